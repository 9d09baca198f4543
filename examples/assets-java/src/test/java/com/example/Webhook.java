package com.example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.StatusBuilder;
import io.fabric8.kubernetes.api.model.admission.v1.AdmissionResponse;
import io.fabric8.kubernetes.api.model.admission.v1.AdmissionResponseBuilder;
import io.fabric8.kubernetes.api.model.admission.v1.AdmissionReview;
import io.fabric8.kubernetes.api.model.admission.v1.AdmissionReviewBuilder;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.function.Function;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** The webhook under test: it adds the label {@code team} to Pods and requires image tags other than {@code latest}. */
final class Webhook implements AutoCloseable {
  private static final char[] PASSWORD = "changeit".toCharArray();

  private final HttpsServer server;
  private final String caBundle;

  /** Listens on loopback with a new certificate in {@code folder}. */
  Webhook(Path folder) throws Exception {
    KeyStore keys = selfSigned(folder.resolve("webhook.p12"));
    String der = Base64.getMimeEncoder().encodeToString(keys.getCertificate("webhook").getEncoded());
    String pem = "-----BEGIN CERTIFICATE-----\n" + der + "\n-----END CERTIFICATE-----\n";
    caBundle = Base64.getEncoder().encodeToString(pem.getBytes(StandardCharsets.US_ASCII));

    KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    managers.init(keys, PASSWORD);
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(managers.getKeyManagers(), null, null);
    server = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setHttpsConfigurator(new HttpsConfigurator(tls));
    server.createContext("/mutate", exchange -> answer(exchange, Webhook::mutate));
    server.createContext("/validate", exchange -> answer(exchange, Webhook::validate));
    server.start();
  }

  String url() {
    return "https://localhost:" + server.getAddress().getPort();
  }

  String caBundle() {
    return caBundle;
  }

  @Override
  public void close() {
    server.stop(0);
  }

  private static AdmissionResponseBuilder mutate(Pod pod) {
    var labels = pod.getMetadata().getLabels();
    if (labels.containsKey("team")) {
      return new AdmissionResponseBuilder().withAllowed(true);
    }
    // fabric8 returns an empty map for missing labels.
    String patch = labels.isEmpty()
        ? "[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"team\": \"unknown\"}}]"
        : "[{\"op\": \"add\", \"path\": \"/metadata/labels/team\", \"value\": \"unknown\"}]";
    return new AdmissionResponseBuilder()
        .withAllowed(true)
        .withPatchType("JSONPatch")
        .withPatch(Base64.getEncoder().encodeToString(patch.getBytes(StandardCharsets.UTF_8)));
  }

  private static AdmissionResponseBuilder validate(Pod pod) {
    for (Container container : pod.getSpec().getContainers()) {
      String image = container.getImage().substring(container.getImage().lastIndexOf('/') + 1);
      if (!image.contains(":") || image.endsWith(":latest")) {
        return new AdmissionResponseBuilder()
            .withAllowed(false)
            .withStatus(new StatusBuilder()
                .withCode(403)
                .withMessage(container.getName() + ": the image needs a tag")
                .build());
      }
    }
    return new AdmissionResponseBuilder().withAllowed(true);
  }

  private static void answer(HttpExchange exchange, Function<Pod, AdmissionResponseBuilder> handler)
      throws IOException {
    try (exchange; InputStream body = exchange.getRequestBody()) {
      var request = Serialization.unmarshal(body, AdmissionReview.class).getRequest();
      AdmissionResponse response = handler.apply((Pod) request.getObject()).withUid(request.getUid()).build();
      byte[] review = Serialization.asJson(new AdmissionReviewBuilder().withResponse(response).build())
          .getBytes(StandardCharsets.UTF_8);
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      exchange.sendResponseHeaders(200, review.length);
      exchange.getResponseBody().write(review);
    }
  }

  private static KeyStore selfSigned(Path file) throws Exception {
    var keytool = new ProcessBuilder(
        Path.of(System.getProperty("java.home"), "bin", "keytool").toString(), "-genkeypair",
        "-alias", "webhook", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=dns:localhost",
        "-storetype", "PKCS12", "-storepass", new String(PASSWORD), "-keystore", file.toString())
        .inheritIO()
        .start();
    if (keytool.waitFor() != 0) {
      throw new IOException("keytool failed");
    }
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream stored = Files.newInputStream(file)) {
      keys.load(stored, PASSWORD);
    }
    return keys;
  }
}
