// Package rest returns the rest.Config of a server that package admittest started.
package rest

import (
	"k8s.io/client-go/rest"

	"github.com/admit-dev/admit/go/admittest"
)

// Config returns a client configuration for a cluster administrator.
func Config(server *admittest.Server) *rest.Config {
	return &rest.Config{
		Host:            server.URL,
		BearerToken:     server.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA},
	}
}
