package dev.admit.testcontainers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.admissionregistration.v1.ValidatingWebhookConfigurationBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AdmitContainerTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String PASSWORD = "changeit";

  /** Returns a container of the image that the environment variable ADMIT_IMAGE names, or skips the test. */
  private static AdmitContainer container() {
    String image = System.getenv("ADMIT_IMAGE");
    assumeTrue(image != null, "ADMIT_IMAGE does not name an image of admit");
    return new AdmitContainer(image);
  }

  private static KubernetesClient client(AdmitContainer server) {
    return new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(server.kubeconfig())).build();
  }

  private static ConfigMap configMap(String namespace, String name) {
    return new ConfigMapBuilder().withNewMetadata().withNamespace(namespace).withName(name).endMetadata().build();
  }

  /** Denies objects with the name {@code denied}. */
  private static void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      var request = JSON.readTree(exchange.getRequestBody()).get("request");
      var review = JSON.createObjectNode().put("apiVersion", "admission.k8s.io/v1").put("kind", "AdmissionReview");
      var response = review.putObject("response");
      response.set("uid", request.get("uid"));
      response.put("allowed", !request.get("name").asText().equals("denied"));
      response.putObject("status").put("message", "not today");
      byte[] body = JSON.writeValueAsBytes(review);
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  private static KeyStore certificate(Path directory) throws Exception {
    Path file = directory.resolve("webhook.p12");
    String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    var command = new ProcessBuilder(keytool, "-genkeypair", "-alias", "webhook", "-keyalg", "EC",
        "-dname", "CN=webhook", "-ext", "san=dns:" + AdmitContainer.HOST_ADDRESS, "-ext", "bc=ca:true",
        "-storetype", "PKCS12", "-keystore", file.toString(), "-storepass", PASSWORD);
    assertEquals(0, command.inheritIO().start().waitFor());
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream stream = Files.newInputStream(file)) {
      keys.load(stream, PASSWORD.toCharArray());
    }
    return keys;
  }

  private static HttpsServer webhook(KeyStore keys) throws Exception {
    var managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    managers.init(keys, PASSWORD.toCharArray());
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(managers.getKeyManagers(), null, null);
    HttpsServer server = HttpsServer.create(new InetSocketAddress(0), 0);
    server.setHttpsConfigurator(new HttpsConfigurator(context));
    server.createContext("/", AdmitContainerTest::handle);
    server.start();
    return server;
  }

  @Test
  void webhookOnTheHostDeniesAnObject(@TempDir Path directory) throws Exception {
    KeyStore keys = certificate(directory);
    HttpsServer webhook = webhook(keys);
    try (var server = container()) {
      server.start();
      KubernetesClient client = client(server);
      String pem = "-----BEGIN CERTIFICATE-----\n"
          + Base64.getMimeEncoder().encodeToString(keys.getCertificate("webhook").getEncoded())
          + "\n-----END CERTIFICATE-----\n";
      client.resource(new ValidatingWebhookConfigurationBuilder()
          .withNewMetadata().withName("w").endMetadata()
          .addNewWebhook()
          .withName("w.example.com").withSideEffects("None").withAdmissionReviewVersions("v1")
          .withNewClientConfig()
          .withUrl("https://" + AdmitContainer.HOST_ADDRESS + ":" + webhook.getAddress().getPort() + "/validate")
          .withCaBundle(Base64.getEncoder().encodeToString(pem.getBytes()))
          .endClientConfig()
          .addNewRule()
          .withOperations("CREATE").withApiGroups("").withApiVersions("v1").withResources("configmaps")
          .endRule()
          .endWebhook()
          .build()).create();
      client.resource(configMap("default", "allowed")).create();
      var denied = assertThrows(
          KubernetesClientException.class, () -> client.resource(configMap("default", "denied")).create());
      String expected = "admission webhook \"w.example.com\" denied the request: not today";
      assertTrue(denied.getMessage().contains(expected), denied.getMessage());
    } finally {
      webhook.stop(0);
    }
  }

  @Test
  void argumentsAreFlagsOfAdmitServe() {
    try (var server = container().withArguments("--disable-admission-plugins=NamespaceLifecycle")) {
      server.start();
      ConfigMap created = client(server).resource(configMap("missing", "a")).create();
      assertEquals("missing", created.getMetadata().getNamespace());
    }
  }
}
