package com.example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.util.Base64;

/** A mutating webhook that makes Pods pull all images from a mirror. */
final class Webhook {
  private static final String REGISTRY = "mirror.example.com/";
  private static final ObjectMapper JSON = new ObjectMapper();

  private Webhook() {}

  private static ArrayNode mutate(JsonNode pod) {
    ArrayNode operations = JSON.createArrayNode();
    JsonNode containers = pod.at("/spec/containers");
    for (int i = 0; i < containers.size(); i++) {
      String image = containers.get(i).path("image").asText();
      if (!image.startsWith(REGISTRY)) {
        operations.addObject()
            .put("op", "replace")
            .put("path", "/spec/containers/" + i + "/image")
            .put("value", REGISTRY + image);
      }
    }
    return operations;
  }

  static void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      JsonNode request = JSON.readTree(exchange.getRequestBody()).path("request");
      var review = JSON.createObjectNode().put("apiVersion", "admission.k8s.io/v1").put("kind", "AdmissionReview");
      var response = review.putObject("response").put("uid", request.path("uid").asText()).put("allowed", true);
      ArrayNode operations = mutate(request.path("object"));
      if (!operations.isEmpty()) {
        response.put("patchType", "JSONPatch")
            .put("patch", Base64.getEncoder().encodeToString(JSON.writeValueAsBytes(operations)));
      }
      byte[] body = JSON.writeValueAsBytes(review);
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
    }
  }
}
