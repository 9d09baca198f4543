// Package admittest starts admit, an API server that calls admission webhooks as kube-apiserver does, for tests.
//
//	server := admittest.Start(t)
//	server.Webhook("deploy/webhook.yaml", handler)
//
// The server stops when the test ends. Its requests and webhook calls are available as Go values; see [Server.Calls].
package admittest
