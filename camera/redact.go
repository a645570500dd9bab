package camera

import (
	"regexp"
	"strings"
)

var (
	urlStart = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://`)
	// nearlyURL matches what was meant as a URL and is not one: user:password@host with too few or too many slashes before
	// it, or none.
	nearlyURL = regexp.MustCompile(`((?:^|[\s=/"'(]))[^\s/@:="'(]+:[^\s@"'/]+@`)
	// secretValue matches a query parameter or a pipeline property that holds a secret.
	// Some cameras have their parameters in the path: /user=me_password=secret_channel=1.
	secretValue = regexp.MustCompile(`(?i)((?:` +
		`(?:^|[?&;,:=/"'\s])[\w.-]*(?:password|passwd|pwd|token|secret|signature|credential|authorization)|` +
		`(?:^|[?&;\s])(?:[\w.-]*[-_.])?(?:pw|pass|auth|sig|key|apikey))\s*=\s*)` +
		`(?:"[^"]*"|'[^']*'|[^&;#\s"']*)`)
)

// Redact returns text without the users and passwords of the URLs in it, and with *** for
// the values of parameters like password= and token=. It is for names, messages and logs; text need
// not be a valid URL.
func Redact(text string) string {
	var out strings.Builder
	for {
		at := urlStart.FindStringIndex(text)
		if at == nil {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:at[1]])
		text = text[at[1]:]
		text = text[userinfo(text):]
	}
	return secretValue.ReplaceAllString(nearlyURL.ReplaceAllString(out.String(), "$1"), "$1***")
}

// userinfo returns the length of the "user:password@" at the start of a URL's rest behind "://".
func userinfo(rest string) int {
	line := upTo(rest, "\r\n")
	// A password may hold the quotes that end a URL in a sentence.
	if i := strings.LastIndexByte(upTo(line, " \t<>/?#"), '@'); i >= 0 {
		return i + 1
	}
	word := upTo(line, " \t\"'<>")
	authority := upTo(word, "/?#")
	// A password with an unescaped "/", "?", "#" or space ends the authority early: what then
	// stands behind the colon is no port. Better too much is removed than too little.
	_, port, ok := strings.Cut(authority, ":")
	if !ok || strings.HasPrefix(authority, "[") || strings.Trim(port, "0123456789") == "" {
		return 0
	}
	if i := strings.LastIndexByte(word, '@'); i >= 0 {
		return i + 1
	}
	return strings.LastIndexByte(line, '@') + 1
}

// upTo returns s up to the first of the given bytes.
func upTo(s, ends string) string {
	if i := strings.IndexAny(s, ends); i >= 0 {
		return s[:i]
	}
	return s
}
