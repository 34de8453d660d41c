//go:build tools

// Package main names the program that this module pins; it is built, never imported.
package main

import _ "helm.sh/helm/v3/cmd/helm"
