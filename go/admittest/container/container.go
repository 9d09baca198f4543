// Package container starts an API server that calls admission webhooks as kube-apiserver does, in a container, with
// Testcontainers for Go. Use package admittest instead where tests can run the binary: it starts faster and records
// webhook calls.
package container

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// HostAddress is the host name under which the API server reaches the machine that runs the tests. A webhook in a test
// listens on all interfaces, its certificate has this name, and its configuration has a URL with this host.
const HostAddress = "host.docker.internal"

const (
	port = "6443/tcp"
	// file is the path of the kubeconfig in the container.
	file = "/kubeconfig"
)

// Container is a running API server.
type Container struct {
	testcontainers.Container
}

// Run starts the API server from an image of admit. testcontainers.WithCmdArgs adds flags of admit serve, such as
// --with-controllers. The caller terminates the container, also if Run returns an error; see
// testcontainers.CleanupContainer.
func Run(ctx context.Context, image string, options ...testcontainers.ContainerCustomizer) (*Container, error) {
	all := append([]testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(port),
		testcontainers.WithCmd("serve", "--listen=0.0.0.0:6443", "--allow-remote", "--kubeconfig-out="+file),
		// The image has no directory that its default user can write.
		testcontainers.WithConfigModifier(func(config *container.Config) { config.User = "0:0" }),
		testcontainers.WithHostConfigModifier(func(config *container.HostConfig) {
			config.ExtraHosts = append(config.ExtraHosts, HostAddress+":host-gateway")
		}),
		// Printed when the kubeconfig is complete.
		testcontainers.WithWaitStrategy(wait.ForLog("KUBECONFIG=" + file)),
	}, options...)
	started, err := testcontainers.Run(ctx, image, all...)
	if started == nil {
		return nil, err
	}
	return &Container{Container: started}, err
}

// Kubeconfig returns a kubeconfig for a cluster administrator, with the published address of the server.
func (c *Container) Kubeconfig(ctx context.Context) ([]byte, error) {
	reader, err := c.CopyFileFromContainer(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("copy the kubeconfig from the container: %w", err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("copy the kubeconfig from the container: %w", err)
	}
	host, err := c.Host(ctx)
	if err != nil {
		return nil, err
	}
	published, err := c.MappedPort(ctx, port)
	if err != nil {
		return nil, err
	}
	// The certificate of the server has the address 127.0.0.1.
	serverName := ""
	if host == "localhost" {
		host = "127.0.0.1"
	} else {
		serverName = "\n    tls-server-name: 127.0.0.1"
	}
	address := "https://" + net.JoinHostPort(host, published.Port()) + serverName
	return []byte(strings.Replace(string(content), "https://127.0.0.1:6443", address, 1)), nil
}
