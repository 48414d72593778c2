package httptarget_test

import (
	"crypto/tls"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target/httptarget"
)

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settings httptarget.Settings
		want     string
	}{
		"a negative timeout":          {httptarget.Settings{Timeout: -time.Second}, "timeout -1s is negative"},
		"a negative response":         {httptarget.Settings{MaxResponse: -1}, "max response -1"},
		"a user agent with a newline": {httptarget.Settings{UserAgent: "a\nb"}, "user agent"},
		"a range with host bits":      {httptarget.Settings{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")}}, "10.1.2.3/8 is no address range"},
		"no range":                    {httptarget.Settings{Allow: []netip.Prefix{{}}}, "no address range"},
		"port 0":                      {httptarget.Settings{Ports: []uint16{0}}, "0 is no port"},
		"an empty secret":             {httptarget.Settings{Secrets: []httptarget.Secret{{}}}, "secrets: number 1 is empty"},
		"a proxy without a host":      {httptarget.Settings{Proxy: &url.URL{Scheme: "http"}}, "proxy"},
		"a proxy of another kind":     {httptarget.Settings{Proxy: &url.URL{Scheme: "ftp", Host: "x"}}, "proxy"},
		"no verification":             {httptarget.Settings{TLSConfig: &tls.Config{InsecureSkipVerify: true}}, "verification cannot be turned off"},
		"an old TLS":                  {httptarget.Settings{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS10}}, "versions below 1.2"},
		"an old TLS only":             {httptarget.Settings{TLSConfig: &tls.Config{MaxVersion: tls.VersionTLS11}}, "versions below 1.2"},
	} {
		if _, err := httptarget.New(tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, tt.want)
		}
	}
}

func TestTheConfigurationOfTLSIsNotChanged(t *testing.T) {
	t.Parallel()
	c := &tls.Config{}
	newTarget(t, httptarget.Settings{TLSConfig: c})
	if c.MinVersion != 0 || c.RootCAs != nil || c.ClientSessionCache != nil || c.NextProtos != nil {
		t.Errorf("it is now %+v", c)
	}
}
