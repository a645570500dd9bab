package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address returns addr as HOST:PORT to listen on. Without a host that is the loopback address: other machines are
// let in only where that was written, as 0.0.0.0 or an address of this machine. Port 0 is any free one.
func Address(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("http %q is no address: use HOST:PORT, such as 127.0.0.1:8090 or :8090", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("http %q: %q is no port: use a number up to 65535", addr, port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// listen opens addr, as Address returns it. The error says what to do.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		cause := err
		var op *net.OpError
		if errors.As(err, &op) {
			cause = op.Err // the address stands before it already
		}
		return nil, fmt.Errorf("http %s: %w: name another address and port with --http", addr, cause)
	}
	return l, nil
}

// mayAsk says whether a request that names host in its header came to the right place. A page of a stranger can point
// its own name at 127.0.0.1 and have a browser read what only this machine may see (DNS rebinding); it
// cannot make the browser name this machine. Where others are let in any name may be ours.
func mayAsk(host, configured string, listening net.Addr) bool {
	if tcp, ok := listening.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	own, _, _ := net.SplitHostPort(configured) // it was listened on: it has a port
	return strings.EqualFold(host, "localhost") || strings.EqualFold(host, own)
}
