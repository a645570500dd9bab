package camera

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"strings"
)

// challenge is one of the ways in which a server asks for user and password (RFC 9110, 11.6.1).
type challenge struct {
	scheme string            // in lower case
	params map[string]string // names in lower case
}

// parseChallenges reads the values of WWW-Authenticate, each of which may hold several challenges. What cannot be read is
// left out.
func parseChallenges(values []string) (list []challenge) {
	for _, v := range values {
		for v = strings.TrimLeft(v, " \t,"); v != ""; v = strings.TrimLeft(v, " \t,") {
			word, rest := httpToken(v)
			if word == "" {
				break
			}
			after := strings.TrimLeft(rest, " \t")
			if !strings.HasPrefix(after, "=") {
				list = append(list, challenge{strings.ToLower(word), map[string]string{}})
				v = after
				continue
			}
			value, rest := httpValue(strings.TrimLeft(after[1:], " \t"))
			if len(list) > 0 {
				list[len(list)-1].params[strings.ToLower(word)] = value
			}
			v = rest
		}
	}
	return list
}

// httpToken cuts a token off.
func httpToken(s string) (token, rest string) {
	if i := strings.IndexAny(s, " \t,=\""); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// httpValue cuts a parameter's value off: a quoted string or a token.
func httpValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexAny(s, " \t,"); i >= 0 {
			return s[:i], s[i:]
		}
		return s, ""
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return out.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String(), ""
}

// digests are the algorithms of RFC 7616 that we know, the best first.
var digests = []struct {
	name string
	new  func() hash.Hash
}{
	{"SHA-256", sha256.New},
	{"MD5", md5.New}, // what most cameras know
}

// authorize returns the Authorization of a GET for target, a path with its query, that answers the best of the challenges: Digest
// with SHA-256, with MD5, Basic. It is "" where none of them is one of these.
func authorize(list []challenge, user *url.Userinfo, target string) string {
	password, _ := user.Password()
	for _, d := range digests {
		for _, c := range list {
			algorithm, session := strings.CutSuffix(strings.ToUpper(c.params["algorithm"]), "-SESS")
			if algorithm == "" {
				algorithm = "MD5"
			}
			if c.scheme == "digest" && algorithm == d.name && c.params["nonce"] != "" && c.authQOP() {
				return c.digest(d.new, session, user.Username(), password, target, rand.Text())
			}
		}
	}
	for _, c := range list {
		if c.scheme == "basic" {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
		}
	}
	return ""
}

// authQOP says whether the quality of protection "auth", or none as in RFC 2069, is offered.
func (c challenge) authQOP() bool {
	qop, ok := c.params["qop"]
	if !ok {
		return true
	}
	for q := range strings.SplitSeq(qop, ",") {
		if strings.EqualFold(strings.TrimSpace(q), "auth") {
			return true
		}
	}
	return false
}

// digest answers by RFC 7616, 3.4. The nonce is used once, so that its count is 1.
func (c challenge) digest(algorithm func() hash.Hash, session bool, user, password, target, cnonce string) string {
	h := func(parts ...string) string {
		sum := algorithm()
		sum.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(sum.Sum(nil))
	}
	const count, method = "00000001", "GET"
	realm, nonce := c.params["realm"], c.params["nonce"]
	secret := h(user, realm, password)
	if session {
		secret = h(secret, nonce, cnonce)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `Digest username=%s, realm=%s, nonce=%s, uri=%s`, quoted(user), quoted(realm), quoted(nonce), quoted(target))
	if _, ok := c.params["qop"]; ok {
		fmt.Fprintf(&out, `, qop=auth, nc=%s, cnonce=%s, response="%s"`, count, quoted(cnonce),
			h(secret, nonce, count, cnonce, "auth", h(method, target)))
	} else {
		fmt.Fprintf(&out, `, response="%s"`, h(secret, nonce, h(method, target)))
		if session {
			fmt.Fprintf(&out, `, cnonce=%s`, quoted(cnonce))
		}
	}
	if a, ok := c.params["algorithm"]; ok {
		fmt.Fprintf(&out, `, algorithm=%s`, a)
	}
	if o, ok := c.params["opaque"]; ok {
		fmt.Fprintf(&out, `, opaque=%s`, quoted(o))
	}
	return out.String()
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoted(s string) string { return `"` + quoter.Replace(s) + `"` }
