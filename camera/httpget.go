package camera

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	httpDial      = 5 * time.Second  // until the connection is there, and as long for TLS
	httpHeader    = 10 * time.Second // from the request to the answer's header
	httpRedirects = 5
)

// newHTTPTransport makes the client of one connection to a camera: HTTP/1.1, no proxy, no compression.
func newHTTPTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: httpDial}).DialContext,
		TLSHandshakeTimeout:    httpDial,
		ResponseHeaderTimeout:  httpHeader,
		MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize:         64 << 10,
		DisableCompression:     true,
	}
}

// errRefused is wrapped by the error of a camera that wants another user or password.
var errRefused = errors.New("401")

// httpGet gets a URL: it answers challenges with the URL's user and password and follows redirects, to which these go
// along only on the same host and not from https to http. Errors hold neither.
func httpGet(ctx context.Context, t http.RoundTripper, u *url.URL) (*http.Response, error) {
	user := u.User
	for range 1 + httpRedirects {
		res, err := httpAsk(ctx, t, u, user)
		if err != nil {
			return nil, err
		}
		switch code := res.StatusCode; code {
		case http.StatusOK:
			return res, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			_ = res.Body.Close() // it is not read
			to, err := redirected(u, res.Header.Get("Location"))
			if err != nil {
				return nil, err
			}
			if to.Hostname() != u.Hostname() || u.Scheme == "https" && to.Scheme != "https" {
				user = nil
			}
			u = to
		default:
			_ = res.Body.Close()
			return nil, fmt.Errorf("the camera answers %s: check the URL", strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code))))
		}
	}
	return nil, fmt.Errorf("the camera redirects more than %d times: check the URL", httpRedirects)
}

// redirected returns where a redirect leads. A user and password in it are the server's idea, not ours to send.
func redirected(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, errors.New("the camera redirects to what is no http or https URL: check the URL")
	}
	return to, nil
}

// httpAsk gets one URL, and again with user and password when the server asks for them.
func httpAsk(ctx context.Context, t http.RoundTripper, u *url.URL, user *url.Userinfo) (*http.Response, error) {
	authorization := ""
	for try := 0; ; try++ {
		res, err := roundTrip(ctx, t, u, authorization)
		if err != nil {
			return nil, explainHTTP(err, u)
		}
		if res.StatusCode != http.StatusUnauthorized {
			return res, nil
		}
		_ = res.Body.Close()
		list := parseChallenges(res.Header.Values("WWW-Authenticate"))
		switch {
		case user == nil:
			return nil, fmt.Errorf("the camera wants a user and password (%w): write USER:${VARIABLE} and an @ before the host", errRefused)
		case try > 0 && !(try == 1 && stale(list)):
			return nil, fmt.Errorf("the camera refuses the user or the password (%w): check both", errRefused)
		}
		if authorization = authorize(list, user, bare(u).RequestURI()); authorization == "" {
			return nil, fmt.Errorf("the camera wants the password in a way that is not supported (%w): set it to Digest or Basic", errRefused)
		}
	}
}

// stale says that only the nonce was too old.
func stale(list []challenge) bool {
	for _, c := range list {
		if strings.EqualFold(c.params["stale"], "true") {
			return true
		}
	}
	return false
}

func roundTrip(ctx context.Context, t http.RoundTripper, u *url.URL, authorization string) (*http.Response, error) {
	req := (&http.Request{Method: http.MethodGet, URL: bare(u), Host: u.Host, Header: http.Header{"User-Agent": {"eyas"}}}).WithContext(ctx)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	return t.RoundTrip(req)
}

// bare returns a URL without user and password.
func bare(u *url.URL) *url.URL {
	b := *u
	b.User = nil
	return &b
}

// explainHTTP says what to do about an error of the transport, which holds no URL.
func explainHTTP(err error, u *url.URL) error {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fmt.Errorf("the certificate of %s is not trusted (%w): name a file with it in SSL_CERT_FILE, or use http://", u.Host, untrusted.Err)
	}
	var network *net.OpError
	var slow net.Error
	if !errors.As(err, &network) && errors.As(err, &slow) && slow.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the camera took the connection and does not answer (%w)", err)
	}
	return err
}
