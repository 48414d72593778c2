package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Port is the number of a TCP port; zero: a free one.
type Port uint16

// UnmarshalText reads a number.
func (p *Port) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil {
		return wrong(string(text), "give a port from 1 to 65535, or 0 for any free one")
	}
	*p = Port(n)
	return nil
}

// String writes the number.
func (p Port) String() string { return strconv.Itoa(int(p)) }

// Host is a name or an address to listen on, without a port.
type Host string

// UnmarshalText refuses what has a port.
func (h *Host) UnmarshalText(text []byte) error {
	host := strings.Trim(string(text), "[]")
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, ":/ ") {
		return wrong(string(text), "give a host or an address such as 127.0.0.1; the port is a setting of its own")
	}
	*h = Host(host)
	return nil
}

// HostPort is an address to listen on.
type HostPort string

// UnmarshalText reads host:port, where the host may be empty.
func (h *HostPort) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return wrong(string(text), "give a host and a port such as 127.0.0.1:9090")
	}
	*h = HostPort(text)
	return nil
}

// Prefixes are ranges of addresses.
type Prefixes []netip.Prefix

// UnmarshalText reads CIDRs and single addresses, separated by commas.
func (p *Prefixes) UnmarshalText(text []byte) error {
	*p = nil
	for _, item := range items(string(text)) {
		prefix, err := parsePrefix(item)
		if err != nil {
			return err
		}
		*p = append(*p, prefix)
	}
	return nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, wrong(text, "give address ranges such as 10.0.0.0/8,127.0.0.1")
	case prefix != prefix.Masked():
		return netip.Prefix{}, wrong(text, "has bits beyond its length; did you mean %v?", prefix.Masked())
	}
	return prefix, nil
}

// String writes the ranges with commas.
func (p Prefixes) String() string { return join(p, netip.Prefix.String) }

// Ports are numbers of TCP ports.
type Ports []uint16

// UnmarshalText reads numbers, separated by commas.
func (p *Ports) UnmarshalText(text []byte) error {
	*p = nil
	for _, item := range items(string(text)) {
		n, err := strconv.ParseUint(item, 10, 16)
		if err != nil || n == 0 {
			return wrong(item, "give ports from 1 to 65535, separated by commas")
		}
		*p = append(*p, uint16(n))
	}
	return nil
}

// String writes the numbers with commas.
func (p Ports) String() string { return join(p, func(n uint16) string { return fmt.Sprint(n) }) }

// items splits a list at commas and blanks.
func items(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

func join[T any](list []T, text func(T) string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = text(v)
	}
	return strings.Join(texts, ",")
}
