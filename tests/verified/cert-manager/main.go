// The webhook of cert-manager. The command that the project builds is a module of its own that is not published; what it
// starts is, and takes these flags. The module's path lets it import what is internal to cert-manager.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	configuration, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	options.AddConfigFlags(pflag.CommandLine, configuration)
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server, err := webhook.NewCertManagerWebhookServer(logs.Log, *configuration)
	if err != nil {
		return err
	}
	return server.Run(logs.NewContext(ctx, logs.Log))
}
