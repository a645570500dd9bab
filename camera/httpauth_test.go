package camera

import (
	"crypto/md5"
	"crypto/sha256"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestParseChallenges(t *testing.T) {
	type p = map[string]string
	tests := []struct {
		name   string
		values []string
		want   []challenge
	}{
		{"none", nil, nil},
		{"basic", []string{`Basic realm="cam"`}, []challenge{{"basic", p{"realm": "cam"}}}},
		{"no parameters", []string{`Basic`}, []challenge{{"basic", p{}}}},
		{"two lines", []string{`Digest nonce="a"`, `basic`}, []challenge{{"digest", p{"nonce": "a"}}, {"basic", p{}}}},
		{"two in a line", []string{`Digest realm="a, b", nonce=x,qop="auth,auth-int" , Basic realm="c"`},
			[]challenge{{"digest", p{"realm": "a, b", "nonce": "x", "qop": "auth,auth-int"}}, {"basic", p{"realm": "c"}}}},
		{"quotes inside", []string{`Basic Realm = "say \"hi\" \\"`}, []challenge{{"basic", p{"realm": `say "hi" \`}}}},
		{"cut off", []string{`Digest realm="a`}, []challenge{{"digest", p{"realm": "a"}}}},
		{"no scheme", []string{`realm="a", Basic`, `=x`, `"`, `, ,`}, []challenge{{"basic", p{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseChallenges(tt.values); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestDigest checks the examples of RFC 7616, 3.9.1, and RFC 2617, 3.5; the one without qop was worked out with md5sum.
func TestDigest(t *testing.T) {
	const nonce, cnonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
	rfc7616 := map[string]string{"realm": "http-auth@example.org", "nonce": nonce, "qop": "auth, auth-int"}
	rfc2617 := map[string]string{"realm": "testrealm@host.com", "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093", "qop": "auth,auth-int"}
	plain := map[string]string{"realm": "testrealm@host.com", "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093"}
	for _, c := range []struct {
		name, password, cnonce, want string
		params                       map[string]string
		sha                          bool
	}{
		{"RFC 7616 MD5", "Circle of Life", cnonce, "8ca523f5e9506fed4657c9700eebdbec", rfc7616, false},
		{"RFC 7616 SHA-256", "Circle of Life", cnonce, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1", rfc7616, true},
		{"RFC 2617", "Circle Of Life", "0a4f113b", "6629fae49393a05397450978507c4ef1", rfc2617, false},
		{"without qop", "Circle Of Life", "0a4f113b", "670fd8c2df070c60b045671b8b24ff02", plain, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			algorithm := md5.New
			if c.sha {
				algorithm = sha256.New
			}
			got := challenge{"digest", c.params}.digest(algorithm, false, "Mufasa", c.password, "/dir/index.html", c.cnonce)
			if !strings.Contains(got, `response="`+c.want+`"`) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if strings.Contains(got, c.password) {
				t.Errorf("%s holds the password", got)
			}
		})
	}
}

// TestAuthorize checks which challenge is answered.
func TestAuthorize(t *testing.T) {
	user := url.UserPassword("us\"er", "pa:ss")
	for _, c := range []struct {
		name   string
		values []string
		want   string // how it begins, or "" for none
		holds  string
	}{
		{"basic", []string{`Basic realm="x"`}, "Basic dXMiZXI6cGE6c3M=", ""},
		{"digest before basic", []string{`Basic realm="x", Digest realm="x", nonce="n", qop="auth"`}, `Digest username="us\"er", realm="x", nonce="n", uri="/a?b=c", qop=auth, nc=00000001, cnonce="`, ""},
		{"SHA-256 before MD5", []string{`Digest realm="x", nonce="n", algorithm=MD5`, `Digest realm="x", nonce="m", algorithm=SHA-256, opaque="o"`}, `Digest username="us\"er", realm="x", nonce="m"`, `, algorithm=SHA-256, opaque="o"`},
		{"with a session", []string{`Digest realm="x", nonce="n", algorithm=md5-sess`}, "Digest ", ", algorithm=md5-sess"},
		{"unknown algorithm", []string{`Digest realm="x", nonce="n", algorithm=SHA-512-256`}, "", ""},
		{"only auth-int", []string{`Digest realm="x", nonce="n", qop="auth-int"`}, "", ""},
		{"without nonce", []string{`Digest realm="x"`}, "", ""},
		{"another scheme", []string{`Negotiate`, `Bearer realm="x"`}, "", ""},
		{"nothing", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := authorize(parseChallenges(c.values), user, "/a?b=c")
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) || !strings.Contains(got, c.holds) {
				t.Errorf("%q, want %q with %q", got, c.want, c.holds)
			}
		})
	}
}

// FuzzChallenges checks that whatever a server asks is answered with one line or not at all.
func FuzzChallenges(f *testing.F) {
	f.Add(`Digest realm="a, b", nonce=x,qop="auth,auth-int", algorithm=SHA-256-sess , Basic realm="c"`)
	f.Add(`Basic`)
	f.Add(`a = "\`)
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n") {
			return // no header does
		}
		got := authorize(parseChallenges([]string{value}), url.UserPassword("user", "s3cret"), "/")
		if strings.ContainsAny(got, "\r\n") || strings.Contains(got, "s3cret") {
			t.Errorf("%q", got)
		}
	})
}
