package web

import (
	"net"
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	for _, c := range []struct{ name, addr, want, fails string }{
		{"port alone", ":8090", "127.0.0.1:8090", ""},
		{"loopback", "127.0.0.1:8090", "127.0.0.1:8090", ""},
		{"everybody", "0.0.0.0:8090", "0.0.0.0:8090", ""},
		{"IPv6", "[::1]:8090", "[::1]:8090", ""},
		{"name", "localhost:8090", "localhost:8090", ""},
		{"any port", ":0", "127.0.0.1:0", ""},
		{"no port", "127.0.0.1", "", "use HOST:PORT"},
		{"number", "8090", "", "use HOST:PORT"},
		{"empty", "", "", "use HOST:PORT"},
		{"port too large", ":70000", "", `"70000" is no port`},
		{"port's name", ":http", "", `"http" is no port`},
		{"URL", "http://127.0.0.1:8090", "", "use HOST:PORT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Address(c.addr)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want an error with %q", err, c.fails)
			}
		})
	}
}

// Whose name is pointed at this machine is not answered, where only this machine may ask.
func TestMayAsk(t *testing.T) {
	loopback, all := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for _, c := range []struct {
		name, host, configured string
		listening              net.Addr
		want                   bool
	}{
		{"loopback address", "127.0.0.1:8090", "127.0.0.1:8090", loopback, true},
		{"localhost", "localhost:8090", "127.0.0.1:8090", loopback, true},
		{"localhost without port", "LocalHost", "127.0.0.1:80", loopback, true},
		{"IPv6", "[::1]:8090", "[::1]:8090", loopback, true},
		{"IPv6 without port", "[::1]", "[::1]:80", loopback, true},
		{"configured name", "Cam.home.arpa:8090", "cam.home.arpa:8090", loopback, true},
		{"stranger", "evil.example:8090", "127.0.0.1:8090", loopback, false},
		{"stranger with a likely name", "localhost.evil.example", "127.0.0.1:8090", loopback, false},
		{"other address", "192.168.0.7:8090", "127.0.0.1:8090", loopback, false},
		{"none", "", "127.0.0.1:8090", loopback, false},
		{"brackets alone", "[]:", "127.0.0.1:8090", loopback, false},
		{"others are let in", "board.lan:8090", "0.0.0.0:8090", all, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mayAsk(c.host, c.configured, c.listening); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPortTaken(t *testing.T) {
	s := listenTest(t, Options{})
	_, err := Listen(s.Addr(), Options{})
	if err == nil {
		t.Fatal("two servers listen on one port")
	}
	if got, want := err.Error(), "http "+s.Addr()+": bind: address already in use: name another address and port with --http"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
