package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.admit.junit.Admit;
import dev.admit.junit.AdmitServer;
import dev.admit.junit.Call;
import org.junit.jupiter.api.Test;

@Admit
class WebhookTest {
  private static final String POD = "{metadata: {name: web}, spec: {containers: [{name: web, image: nginx}]}}";

  @Test
  void sidecarIsPulledFromTheMirror(AdmitServer server) throws Exception {
    server.webhook("webhook.yaml", Webhook::handle);
    server.fakes("fakes.yaml");
    server.create("/api/v1/namespaces/default/pods", POD);
    Call again = server.calls().get(2);
    assertEquals("mirror.example.com", again.webhook());
    assertEquals(2, again.round());
    assertEquals("envoy", again.object().at("/spec/containers/1/image").asText());
    assertEquals("spec.containers[1].image", again.changes().get(0).path());
    assertEquals("mirror.example.com/envoy", again.changes().get(0).to().asText());
  }
}
