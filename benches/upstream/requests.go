package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	clients    = 16
	lists      = 10
	configMaps = "/api/v1/namespaces/default/configmaps"
)

// served is what one request takes: times in nanoseconds, CPU that of the server's processes.
type served struct {
	Requests int     `json:"requests"`
	Rate     float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu"`
	WallP50  float64 `json:"wall_p50"`
	WallP99  float64 `json:"wall_p99"`
	// Resident is the memory of the server's processes afterward, in bytes.
	Resident uint64 `json:"resident"`
}

// requests measures a server on one core, with its clients and the webhook on another.
func requests(given arguments) error {
	if err := pin(given.clientCPU); err != nil {
		return err
	}
	hook, err := startWebhook(given.benches, given.clientCPU)
	if err != nil {
		return err
	}
	defer hook.stop()
	api, err := startServer(given)
	if err != nil {
		return err
	}
	defer api.stop()
	if err := prepareCluster(api, hook); err != nil {
		return err
	}
	results := map[string]served{}
	text := strings.Repeat("x", 800)
	body := func(index int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"created-%d"},"data":{"text":%q}}`, index, text)
	}
	list := func(client *http.Client, _ int) error {
		_, err := ask(client, api.config.Host, http.MethodGet, configMaps, nil, http.StatusOK)
		return err
	}
	for _, situation := range []struct {
		name   string
		atOnce int
		count  int
		one    func(*http.Client, int) error
	}{
		{"requests/create, one webhook, 16 clients", clients, given.creates, func(client *http.Client, index int) error {
			answer, err := ask(client, api.config.Host, http.MethodPost, configMaps, body(index), http.StatusCreated)
			if err == nil && !bytes.Contains(answer, []byte(`"labels":{"a":"b"}`)) {
				err = errors.New("created without the label of the webhook")
			}
			return err
		}},
		{"requests/get, 16 clients", clients, 2 * given.creates, func(client *http.Client, index int) error {
			path := fmt.Sprintf("%s/created-%d", configMaps, index%given.creates)
			_, err := ask(client, api.config.Host, http.MethodGet, path, nil, http.StatusOK)
			return err
		}},
		{fmt.Sprintf("requests/list of %d", given.creates), 1, lists, list},
	} {
		result, err := serve(api, situation.atOnce, situation.count, situation.one)
		if err != nil {
			return fmt.Errorf("%s: %w", situation.name, err)
		}
		results[situation.name] = result
		fmt.Printf("%-42s %s: %8.0f/s, CPU %10s each, p50 %10s, p99 %10s, %4d MB\n", situation.name, given.server,
			result.Rate, span(result.CPU), span(result.WallP50), span(result.WallP99), result.Resident/1_000_000)
	}
	return writeJSON(given.json, results)
}

// pin moves all threads of this process, and those that it will start, to the core.
func pin(cpu string) error {
	var set unix.CPUSet
	var number int
	if _, err := fmt.Sscan(cpu, &number); err != nil {
		return fmt.Errorf("-client-cpu %s: %w", cpu, err)
	}
	set.Set(number)
	runtime.GOMAXPROCS(1)
	return unix.SchedSetaffinity(0, &set)
}

// prepareCluster registers a webhook that adds a label to each ConfigMap, and waits until it is called.
func prepareCluster(api *server, hook *webhook) error {
	client, err := kubernetes.NewForConfig(api.config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	configuration := mutatingConfiguration(hook, []entry{{path: "/patch", resource: "configmaps"}})
	webhooks := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := webhooks.Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		created, err := client.CoreV1().ConfigMaps("default").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{"All"}})
		return err == nil && created.Labels["a"] == "b", err
	})
}

// serve makes requests, so many at once, each with a connection of its own.
func serve(api *server, atOnce, count int, one func(*http.Client, int) error) (served, error) {
	pool := make([]*http.Client, atOnce)
	for index := range pool {
		// The transports of equal configurations are one, unless the dialer differs.
		config := rest.CopyConfig(api.config)
		config.Timeout = time.Minute + time.Duration(index)
		transport, err := rest.TLSConfigFor(config)
		if err != nil {
			return served{}, err
		}
		wrapped, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: transport, ForceAttemptHTTP2: true})
		if err != nil {
			return served{}, err
		}
		pool[index] = &http.Client{Transport: wrapped, Timeout: config.Timeout}
		// The handshake is not measured.
		if _, err := ask(pool[index], config.Host, http.MethodGet, "/api/v1/namespaces/default", nil, http.StatusOK); err != nil {
			return served{}, err
		}
	}
	cpu, _, err := api.usage()
	if err != nil {
		return served{}, err
	}
	walls := make([]float64, count)
	var next atomic.Int64
	failed := make([]error, atOnce)
	var group sync.WaitGroup
	started := time.Now()
	for index, client := range pool {
		group.Go(func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= count {
					return
				}
				begun := time.Now()
				if err := one(client, number); err != nil {
					failed[index] = err
					return
				}
				walls[number] = float64(time.Since(begun))
			}
		})
	}
	group.Wait()
	took := time.Since(started)
	if err := errors.Join(failed...); err != nil {
		return served{}, err
	}
	used, resident, err := api.usage()
	if err != nil {
		return served{}, err
	}
	for _, client := range pool {
		client.CloseIdleConnections()
	}
	sort.Float64s(walls)
	return served{
		Requests: count, Rate: float64(count) / took.Seconds(), CPU: float64(used-cpu) / float64(count),
		WallP50: percentile(walls, 50), WallP99: percentile(walls, 99), Resident: resident,
	}, nil
}

func ask(client *http.Client, host, method, path string, body []byte, expected int) ([]byte, error) {
	request, err := http.NewRequest(method, host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != expected {
		var status metav1.Status
		_ = json.Unmarshal(answer, &status)
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, status.Message)
	}
	return answer, nil
}
