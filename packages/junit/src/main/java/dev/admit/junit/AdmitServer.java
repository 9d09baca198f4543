package dev.admit.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A running API server that calls admission webhooks as kube-apiserver does. */
public final class AdmitServer implements AutoCloseable {
  private static final long STOP_TIMEOUT_SECONDS = 10;
  private static final String CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/";
  private static final Pattern SEPARATOR = Pattern.compile("^---.*$", Pattern.MULTILINE);
  private static final Pattern KIND =
      Pattern.compile("^kind: *[\"']?(Mutating|Validating)WebhookConfiguration\\b", Pattern.MULTILINE);
  // A CA certificate or a placeholder. `register` replaces it, and the server rejects a placeholder.
  private static final Pattern CA_BUNDLE =
      Pattern.compile("\\bcaBundle: *(\\$\\{[^}]*\\}|\"[^\"]*\"|'[^']*'|[^\\s,}|>\"'][^\\s,}]*)");
  private static final String FROM_SOURCE =
      "build admit from source: cargo install --locked --git https://github.com/admit-dev/admit admit";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final String binary = binary(System.getenv("ADMIT"), System.getenv("PATH"));
  private final Path directory = Files.createTempDirectory("admit-");
  private final Deque<Runnable> closers = new ArrayDeque<>();
  private String url;
  private String token;
  private String ca;
  private HttpClient client;
  private KubernetesClient kubernetes;

  private AdmitServer() throws IOException {}

  /** Starts an API server with arguments for {@code admit serve}. */
  public static AdmitServer start(String... args) throws IOException {
    AdmitServer server = new AdmitServer();
    try {
      server.serve(args);
      return server;
    } catch (IOException | RuntimeException error) {
      server.close();
      throw error;
    }
  }

  /** Returns the path of the binary: {@code ADMIT}, or admit on {@code PATH}. */
  static String binary(String environment, String path) throws IOException {
    if (environment != null && !environment.isEmpty()) {
      if (!Files.isExecutable(Path.of(environment))) {
        throw new IOException("invalid environment variable ADMIT: " + environment + " is not an executable file");
      }
      return environment;
    }
    return Arrays.stream((path == null ? "" : path).split(File.pathSeparator))
        .map(folder -> Path.of(folder, "admit"))
        .filter(Files::isExecutable)
        .findFirst()
        .orElseThrow(() -> new IOException("admit not found on PATH: download a release, or " + FROM_SOURCE))
        .toString();
  }

  private void serve(String... args) throws IOException {
    List<String> command = new ArrayList<>(
        List.of("serve", "--kubeconfig-out", kubeconfig().toString(), "--record", records().toString()));
    command.addAll(List.of(args));
    BufferedReader lines = run(command);
    // The kubeconfig is complete when the second line, with its path, is printed.
    if (lines.readLine() == null || lines.readLine() == null) {
      throw new IOException("admit serve stopped: " + log("serve"));
    }
    String content = Files.readString(kubeconfig());
    url = field(content, "server");
    token = field(content, "token");
    ca = new String(Base64.getDecoder().decode(field(content, "certificate-authority-data")), StandardCharsets.US_ASCII);
    client = HttpClient.newBuilder().sslContext(Tls.client(ca)).build();
  }

  /**
   * Returns a client with the permissions of a cluster administrator and the default namespace {@code default}. Closing
   * the server also closes the client.
   */
  public synchronized KubernetesClient client() throws IOException {
    if (kubernetes == null) {
      Config config = Config.fromKubeconfig(Files.readString(kubeconfig()));
      config.setNamespace("default");
      kubernetes = new KubernetesClientBuilder().withConfig(config).build();
      closers.push(kubernetes::close);
    }
    return kubernetes;
  }

  /** Returns the path of a kubeconfig for a cluster administrator. */
  public Path kubeconfig() {
    return directory.resolve("kubeconfig");
  }

  /** Returns the address of the server, such as {@code https://127.0.0.1:6443}. */
  public String url() {
    return url;
  }

  /** Returns the bearer token of a cluster administrator. */
  public String token() {
    return token;
  }

  /** Returns the PEM certificates that verify the server. */
  public String ca() {
    return ca;
  }

  /** Serves a handler over TLS, registers the webhook configurations in a manifest, and returns the URL. */
  public String webhook(String manifest, HttpHandler handler) throws IOException {
    Path folder = directory.resolve("webhook");
    String authority = certificate(folder);
    HttpsServer server = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setHttpsConfigurator(new HttpsConfigurator(Tls.server(folder)));
    server.createContext("/", handler);
    ExecutorService threads = Executors.newCachedThreadPool();
    server.setExecutor(threads);
    server.start();
    closers.push(() -> {
      server.stop(0);
      threads.shutdownNow();
    });
    String address = "https://localhost:" + server.getAddress().getPort();
    register(manifest, address, authority);
    return address;
  }

  /** Writes tls.crt, tls.key, and ca.crt for a server on loopback, and returns the CA certificate. */
  public String certificate(Path folder) throws IOException {
    List<String> command = List.of(
        binary, "certs", "--ip", "127.0.0.1", "--dns", "localhost", "--force", "--out", folder.toString());
    Process process = new ProcessBuilder(command)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.appendTo(directory.resolve("certs.log").toFile()))
        .start();
    try {
      if (process.waitFor() != 0) {
        throw new IOException("admit certs failed: " + log("certs"));
      }
    } catch (InterruptedException error) {
      throw interrupted(error);
    }
    return Files.readString(folder.resolve("ca.crt"));
  }

  /**
   * Registers the webhook configurations in a manifest (a YAML file) with the URL of a webhook server and the PEM
   * certificates that verify it. The paths in the manifest stay as they are; objects of other kinds are ignored.
   */
  public void register(String manifest, String webhookUrl, String authority) throws IOException {
    boolean isRegistered = false;
    for (String document : SEPARATOR.split(Files.readString(Path.of(manifest)))) {
      Matcher kind = KIND.matcher(document);
      if (!kind.find()) {
        continue;
      }
      String collection = CONFIGURATIONS + kind.group(1).toLowerCase(Locale.ROOT) + "webhookconfigurations";
      // A dry run converts YAML to JSON.
      String body = CA_BUNDLE.matcher(document).replaceAll("caBundle: null");
      JsonNode configuration = create(collection + "?dryRun=All", body);
      for (JsonNode webhook : configuration.path("webhooks")) {
        JsonNode old = webhook.path("clientConfig");
        String path = old.has("service")
            ? old.path("service").path("path").asText("")
            : URI.create(old.path("url").asText()).getPath();
        ((ObjectNode) webhook).putObject("clientConfig")
            .put("url", webhookUrl + path)
            .put("caBundle", Base64.getEncoder().encodeToString(authority.getBytes(StandardCharsets.US_ASCII)));
      }
      ((ObjectNode) configuration.path("metadata"))
          .remove(List.of("uid", "creationTimestamp", "generation", "managedFields"));
      create(collection, configuration.toString());
      isRegistered = true;
    }
    if (!isRegistered) {
      throw new IOException(manifest + " does not contain a webhook configuration");
    }
  }

  /**
   * Starts the fakes in a file for {@code admit fakes}, and registers them. By default, fakes are called only in
   * namespaces with the label {@code admit-fakes=enabled}.
   */
  public void fakes(String file) throws IOException {
    BufferedReader lines = run(List.of("fakes", "-f", file, "--listen", "127.0.0.1:0", "-o", "json"));
    // The list ends with a line that contains only a brace.
    StringBuilder list = new StringBuilder();
    String line;
    do {
      line = lines.readLine();
      if (line == null) {
        throw new IOException("admit fakes stopped: " + log("fakes"));
      }
      list.append(line);
    } while (!line.equals("}"));
    for (JsonNode configuration : JSON.readTree(list.toString()).path("items")) {
      String collection = configuration.path("kind").asText().toLowerCase(Locale.ROOT) + "s";
      create(CONFIGURATIONS + collection, configuration.toString());
    }
  }

  /**
   * Creates an object (YAML or JSON) in a collection, such as {@code /api/v1/namespaces/default/pods}, and returns it as
   * the server stored it.
   *
   * @throws StatusException if the server rejects the object
   */
  public JsonNode create(String collection, String object) throws IOException {
    // Every JSON document is a YAML document.
    HttpRequest request = HttpRequest.newBuilder(URI.create(url + collection))
        .header("Content-Type", "application/yaml")
        .header("Accept", "application/json")
        .header("Authorization", "Bearer " + token)
        .POST(HttpRequest.BodyPublishers.ofString(object))
        .build();
    try {
      HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
      JsonNode body = JSON.readTree(response.body());
      if (response.statusCode() >= 400) {
        throw new StatusException(response.statusCode(), body.path("message").asText());
      }
      return body;
    } catch (InterruptedException error) {
      throw interrupted(error);
    }
  }

  /** Returns the reports of all requests that could have changed an object, in the order in which they ended. */
  public List<JsonNode> requests() throws IOException {
    List<JsonNode> requests = new ArrayList<>();
    try (Stream<Path> files = Files.list(records())) {
      for (Path file : files.filter(path -> path.toString().endsWith(".jsonl")).sorted().toList()) {
        String content = Files.readString(file);
        // A line without its end is still being written.
        for (String line : content.substring(0, content.lastIndexOf('\n') + 1).lines().toList()) {
          requests.add(JSON.readTree(line));
        }
      }
    }
    return requests;
  }

  /** Returns the webhook calls of all requests, in the order in which they ended. */
  public List<Call> calls() throws IOException {
    List<Call> calls = new ArrayList<>();
    for (JsonNode request : requests()) {
      for (JsonNode call : request.path("calls")) {
        calls.add(JSON.treeToValue(call, Call.class));
      }
    }
    return calls;
  }

  /** Stops the server, its fakes, and its webhooks. */
  @Override
  public void close() {
    while (!closers.isEmpty()) {
      closers.pop().run();
    }
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Starts admit, returns its standard output, and stops it with the server. */
  private BufferedReader run(List<String> args) throws IOException {
    List<String> command = new ArrayList<>(List.of(binary));
    command.addAll(args);
    Process process = new ProcessBuilder(command)
        .redirectError(ProcessBuilder.Redirect.appendTo(directory.resolve(args.get(0) + ".log").toFile()))
        .start();
    closers.push(() -> {
      process.destroy();
      try {
        if (!process.waitFor(STOP_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
          process.destroyForcibly();
        }
      } catch (InterruptedException error) {
        process.destroyForcibly();
        Thread.currentThread().interrupt();
      }
    });
    return process.inputReader();
  }

  private Path records() {
    return directory.resolve("records");
  }

  private String log(String command) throws IOException {
    return Files.readString(directory.resolve(command + ".log")).strip();
  }

  /** Returns a field of a kubeconfig in the form in which admit serve writes it. */
  private static String field(String kubeconfig, String name) throws IOException {
    Matcher found = Pattern.compile("^ *" + name + ": (\\S+)$", Pattern.MULTILINE).matcher(kubeconfig);
    if (!found.find()) {
      throw new IOException("the kubeconfig of admit serve does not contain " + name);
    }
    return found.group(1);
  }

  private static IOException interrupted(InterruptedException error) {
    Thread.currentThread().interrupt();
    return (IOException) new InterruptedIOException().initCause(error);
  }
}
