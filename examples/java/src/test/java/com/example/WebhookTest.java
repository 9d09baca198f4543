package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.admit.junit.Admit;
import dev.admit.junit.AdmitServer;
import dev.admit.junit.Call;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.Test;

@Admit
class WebhookTest {
  private static final Pod POD = new PodBuilder()
      .withNewMetadata().withName("web").endMetadata()
      .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec()
      .build();

  @Test
  void sidecarIsPulledFromTheMirror(AdmitServer server, KubernetesClient client) throws Exception {
    server.webhook("webhook.yaml", Webhook::handle);
    server.fakes("fakes.yaml");
    client.pods().resource(POD).create();
    Call again = server.calls().get(2);
    assertEquals("mirror.example.com", again.webhook());
    assertEquals(2, again.round());
    assertEquals("envoy", again.object().at("/spec/containers/1/image").asText());
    assertEquals("spec.containers[1].image", again.changes().get(0).path());
    assertEquals("mirror.example.com/envoy", again.changes().get(0).to().asText());
  }
}
