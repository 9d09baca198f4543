import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ContainerBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.admission.v1.AdmissionReview;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.javaoperatorsdk.webhook.admission.AdmissionController;
import io.javaoperatorsdk.webhook.admission.NotAllowedException;
import io.javaoperatorsdk.webhook.admission.Operation;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.HashMap;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** Three controllers of the webhooks framework behind the HTTP server of the JDK. */
class Webhook {
  static final ObjectMapper JSON = Serialization.jsonMapper();

  public static void main(String[] arguments) throws Exception {
    var folder = Path.of(arguments[1]);
    var server = HttpsServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.setHttpsConfigurator(new HttpsConfigurator(context(folder)));
    server.setExecutor(Executors.newCachedThreadPool());
    var inject = new AdmissionController<Pod>(Webhook::inject);
    var tags = new AdmissionController<Pod>(Webhook::tags);
    var protect = new AdmissionController<ConfigMap>(Webhook::protect);
    server.createContext("/inject", exchange -> answer(exchange, inject));
    server.createContext("/tags", exchange -> answer(exchange, tags));
    server.createContext("/protect", exchange -> answer(exchange, protect));
    server.start();
  }

  /** Adds a sidecar to the Pods that ask for it, and a label by which they are found. */
  static Pod inject(Pod pod, Operation operation) {
    var annotations = pod.getMetadata().getAnnotations();
    if (annotations == null || !"true".equals(annotations.get("proxy.example/inject"))) {
      return pod;
    }
    if (pod.getMetadata().getLabels() == null) {
      pod.getMetadata().setLabels(new HashMap<>());
    }
    pod.getMetadata().getLabels().put("proxy.example/injected", "true");
    var containers = pod.getSpec().getContainers();
    if (containers.stream().noneMatch(container -> container.getName().equals("proxy"))) {
      containers.add(new ContainerBuilder().withName("proxy").withImage("registry.example/proxy:1.4").build());
    }
    return pod;
  }

  /** Refuses images that may be another one tomorrow. */
  static void tags(Pod pod, Pod old, Operation operation) {
    for (var container : pod.getSpec().getContainers()) {
      if (container.getImage().endsWith(":latest")) {
        throw new NotAllowedException(container.getName() + ": the image needs a tag other than latest");
      }
    }
  }

  /** Keeps the ConfigMaps that say so. */
  static void protect(ConfigMap object, ConfigMap old, Operation operation) {
    var annotations = old.getMetadata().getAnnotations();
    if (annotations != null && "true".equals(annotations.get("proxy.example/keep"))) {
      throw new NotAllowedException("remove the annotation proxy.example/keep first");
    }
  }

  /** What cannot be read is answered with 400, and what cannot be handled with 500. */
  static void answer(HttpExchange exchange, AdmissionController<?> controller) throws IOException {
    try (exchange) {
      AdmissionReview review;
      try {
        review = JSON.readValue(exchange.getRequestBody(), AdmissionReview.class);
      } catch (IOException error) {
        send(exchange, 400, error.getMessage().getBytes());
        return;
      }
      try {
        send(exchange, 200, JSON.writeValueAsBytes(controller.handle(review)));
      } catch (RuntimeException error) {
        send(exchange, 500, error.toString().getBytes());
      }
    }
  }

  static void send(HttpExchange exchange, int status, byte[] body) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
  }

  static SSLContext context(Path folder) throws Exception {
    var pem = Files.readString(folder.resolve("tls.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
    var key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    try (var file = Files.newInputStream(folder.resolve("tls.crt"))) {
      var chain = CertificateFactory.getInstance("X.509").generateCertificates(file);
      var store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      store.setKeyEntry("webhook", key, new char[0], chain.toArray(new java.security.cert.Certificate[0]));
      var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      keys.init(store, new char[0]);
      var context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), null, null);
      return context;
    }
  }
}
