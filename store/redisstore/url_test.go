package redisstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]address{
		"redis://h":                    {hosts: []string{"h:6379"}},
		"redis://":                     {hosts: []string{"127.0.0.1:6379"}},
		"redis://u:p%40%2F@h:1/3":      {hosts: []string{"h:1"}, user: "u", password: "p@/", db: 3},
		"redis://:p@[::1]:7":           {hosts: []string{"[::1]:7"}, password: "p"},
		"redis://[::1]":                {hosts: []string{"[::1]:6379"}},
		"redis+cluster://a:1,b":        {kind: "cluster", hosts: []string{"a:1", "b:6379"}},
		"REDIS+Cluster://u:p@a:1,b:2/": {kind: "cluster", hosts: []string{"a:1", "b:2"}, user: "u", password: "p"},
		"redis+sentinel://a,b:2/1?master=m&sentinel_user=s&sentinel_password=t": {
			kind: "sentinel", hosts: []string{"a:26379", "b:2"}, db: 1, master: "m", sentinelUser: "s", sentinelPassword: "t",
		},
	} {
		got, err := parseURL(url, Settings{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		same := got.kind == want.kind && slices.Equal(got.hosts, want.hosts) && got.user == want.user && got.password == want.password &&
			got.db == want.db && got.master == want.master && got.sentinelUser == want.sentinelUser &&
			got.sentinelPassword == want.sentinelPassword && got.tls == nil
		if !same {
			t.Errorf("%s: %+v, want %+v", url, got, want)
		}
	}
}

func TestURLParametersGoBeforeSettings(t *testing.T) {
	t.Parallel()
	given := Settings{Prefix: "given", Pool: 7}
	a, err := parseURL("rediss://h?prefix=p&wait_replicas=2&wait_timeout=3s&timeout=250ms", given)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Prefix: "p", WaitReplicas: 2, WaitTimeout: 3 * time.Second, Pool: 7, Timeout: 250 * time.Millisecond}
	if a.settings != want {
		t.Errorf("the settings are %+v, want %+v", a.settings, want)
	}
	if a.tls == nil || a.tls.ServerName != "h" {
		t.Errorf("TLS of a rediss URL is %+v", a.tls)
	}
}

func TestWrongURLsAreRefusedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"localhost:6379":             "no scheme",
		"http://h":                   "no scheme of a Redis URL",
		"redis://a,b":                "names one host",
		"redis://h/db":               "number of a database",
		"redis+cluster://h/1":        "no database but 0",
		"redis+sentinel://:secret@h": "names its master",
		"redis://h?master=m":         "parameter master",
		"redis://h?password=secret":  "parameter password",
		"redis://h?prefix=a{b":       "braces",
		"redis://h?pool=many":        "parameter pool: give a number",
		"redis://h?timeout=secret":   "give a duration",
		"redis://u:%zzsecret@h":      "percent-encoded",
		"redis://h?ca=/none":         "parameter ca",
		"rediss://h?ca=/none":        "no such file",
		"redis://h?prefix=%zz":       "name=value",
		"redis://h?wait_replicas=-1": "give a number",
	} {
		_, err := parseURL(url, Settings{})
		var wrong *URLError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells a secret: %v", url, err)
		}
	}
}
