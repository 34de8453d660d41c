//go:build tools

// Package tools names the program that this module pins; it is built, never imported.
package tools

import _ "github.com/prometheus/memcached_exporter/pkg/exporter"
