package dev.admit.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Base64;
import org.junit.jupiter.api.Test;

@Admit(args = {"--enable-admission-plugins", "AlwaysPullImages"})
class AdmitServerTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String MANIFEST = "src/test/resources/webhook.yaml";
  private static final String PODS = "/api/v1/namespaces/default/pods";
  private static final String POD = """
      apiVersion: v1
      kind: Pod
      metadata: {name: web}
      spec: {containers: [{name: web, image: "nginx:1"}]}
      """;

  /** Adds a label to Pods without it at /mutate, and denies every object at /validate. */
  private static void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      var review = JSON.createObjectNode().put("apiVersion", "admission.k8s.io/v1").put("kind", "AdmissionReview");
      var response = review.putObject("response");
      response.set("uid", JSON.readTree(exchange.getRequestBody()).at("/request/uid"));
      if (exchange.getRequestURI().getPath().equals("/mutate")) {
        String patch = "[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"team\": \"unknown\"}}]";
        response.put("allowed", true).put("patchType", "JSONPatch")
            .put("patch", Base64.getEncoder().encodeToString(patch.getBytes(StandardCharsets.UTF_8)));
      } else {
        response.put("allowed", false).putObject("status").put("message", "not today");
      }
      byte[] body = JSON.writeValueAsBytes(review);
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  @Test
  void webhookChangesThePod(AdmitServer server) throws Exception {
    server.webhook(MANIFEST, AdmitServerTest::handle);
    assertEquals("unknown", server.create(PODS, POD).at("/metadata/labels/team").asText());
    assertEquals(1, server.calls().size());
    Call call = server.calls().get(0);
    assertEquals("team.example.com", call.webhook());
    assertEquals("metadata.labels", call.changes().get(0).path());
    assertEquals("web", call.object().at("/metadata/name").asText());
  }

  @Test
  void denialThrowsTheMessageOfTheServer(AdmitServer server) throws Exception {
    server.webhook(MANIFEST, AdmitServerTest::handle);
    var denied = assertThrows(StatusException.class,
        () -> server.create("/api/v1/namespaces/default/configmaps", "{\"metadata\": {\"name\": \"settings\"}}"));
    assertEquals("admission webhook \"deny.example.com\" denied the request: not today", denied.getMessage());
    assertEquals(400, denied.code());
    var last = server.requests().get(server.requests().size() - 1);
    assertFalse(last.at("/decision/allowed").asBoolean(true));
  }

  @Test
  void webhookIsReinvokedAfterAFake(AdmitServer server) throws Exception {
    server.webhook(MANIFEST, AdmitServerTest::handle);
    server.fakes("src/test/resources/fakes.yaml");
    server.create(PODS, POD);
    Call again = server.calls().get(2);
    assertEquals("team.example.com", again.webhook());
    assertEquals(2, again.round());
    assertEquals(2, again.object().at("/spec/containers").size());
  }

  @Test
  void argumentsArePassedToTheServer(AdmitServer server) throws Exception {
    assertEquals("Always", server.create(PODS, POD).at("/spec/containers/0/imagePullPolicy").asText());
  }

  @Test
  void closedServerHasStoppedAndRemovedItsFiles() throws Exception {
    AdmitServer closed = AdmitServer.start();
    closed.close();
    assertFalse(Files.exists(closed.kubeconfig()));
    assertThrows(IOException.class, () -> closed.create(PODS, POD));
  }

  @Test
  void errorOfTheServerIsThrown() {
    var error = assertThrows(IOException.class, () -> AdmitServer.start("--unknown"));
    assertTrue(error.getMessage().startsWith("admit serve stopped: "), error.getMessage());
    assertTrue(error.getMessage().contains("--unknown"), error.getMessage());
  }

  @Test
  void missingBinaryErrorSaysHowToBuild() {
    var missing = assertThrows(IOException.class, () -> AdmitServer.binary(null, "/missing"));
    assertTrue(missing.getMessage().contains("cargo install --locked --git"), missing.getMessage());
    var invalid = assertThrows(IOException.class, () -> AdmitServer.binary("/missing/admit", ""));
    assertEquals("invalid environment variable ADMIT: /missing/admit is not an executable file", invalid.getMessage());
  }
}
