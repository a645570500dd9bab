package camera

import (
	"net"
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
	if !ok || strings.HasPrefix(authority, "[") {
		return 0
	}
	if strings.Trim(port, "0123456789") == "" {
		return openPassword(upTo(line, " \t<>"), authority) // which may hold quotes, too
	}
	if i := strings.LastIndexByte(word, '@'); i >= 0 {
		return i + 1
	}
	return strings.LastIndexByte(line, '@') + 1
}

// openPassword returns the length of "user:password@" where the password begins with digits, or is empty, up to a "/", "?" or "#" that is
// not escaped: u:12/secret@host. A port and a path with an @ look the same: they are taken for a password, too, except behind an address,
// which is no user.
func openPassword(word, authority string) int {
	host, _, _ := strings.Cut(authority, ":")
	if len(word) == len(authority) || net.ParseIP(host) != nil {
		return 0
	}
	behind := len(authority) + 1
	if i := strings.LastIndexByte(upTo(word[behind:], "?#"), '@'); i >= 0 {
		return behind + i + 1
	}
	return 0
}

// splitPassword fails where the rest of a URL behind "://" may have a password with a character that ends it early: its
// first part would be sent as a port, and the rest shown as a path.
func splitPassword(rest string) error {
	if authority := upTo(rest, "/?#"); !strings.Contains(authority, "@") && userinfo(rest) > len(authority) {
		return badSpec("there is an @ behind the host: characters like / ? # in a user or password are written as %%XX, or come from ${VARIABLE}; " +
			"an @ in a path is written as %%40")
	}
	return nil
}

// upTo returns s up to the first of the given bytes.
func upTo(s, ends string) string {
	if i := strings.IndexAny(s, ends); i >= 0 {
		return s[:i]
	}
	return s
}
