package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubeapitest.junit.EnableKubeAPIServer;
import io.fabric8.kubeapitest.junit.KubeConfig;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.admissionregistration.v1.MutatingWebhookConfigurationBuilder;
import io.fabric8.kubernetes.api.model.admissionregistration.v1.RuleWithOperationsBuilder;
import io.fabric8.kubernetes.api.model.admissionregistration.v1.ValidatingWebhookConfigurationBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests a Java webhook with the API server in the environment variable KUBE_API_TEST_DIR. */
@EnableKubeAPIServer
class WebhookTest {
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  @KubeConfig
  static String kubeConfig;

  @TempDir
  static Path folder;

  private static KubernetesClient client;
  private static Webhook webhook;

  @BeforeAll
  static void install() throws Exception {
    client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(kubeConfig)).build();
    webhook = new Webhook(folder);
    var pods = new RuleWithOperationsBuilder()
        .withApiGroups("").withApiVersions("v1").withResources("pods").withOperations("CREATE")
        .build();
    client.resource(new MutatingWebhookConfigurationBuilder()
        .withNewMetadata().withName("pods.example.com").endMetadata()
        .addNewWebhook()
        .withName("mutate.pods.example.com")
        .withNewClientConfig().withUrl(webhook.url() + "/mutate").withCaBundle(webhook.caBundle()).endClientConfig()
        .withRules(pods).withSideEffects("None").withAdmissionReviewVersions("v1")
        .endWebhook()
        .build()).create();
    client.resource(new ValidatingWebhookConfigurationBuilder()
        .withNewMetadata().withName("pods.example.com").endMetadata()
        .addNewWebhook()
        .withName("validate.pods.example.com")
        .withNewClientConfig().withUrl(webhook.url() + "/validate").withCaBundle(webhook.caBundle()).endClientConfig()
        .withRules(pods).withSideEffects("None").withAdmissionReviewVersions("v1")
        .endWebhook()
        .build()).create();
    Instant deadline = Instant.now().plus(PATIENCE);
    while (!isCalled()) {
      assertTrue(Instant.now().isBefore(deadline), "the webhooks are not called");
      Thread.sleep(20);
    }
  }

  @AfterAll
  static void stop() {
    webhook.close();
    client.close();
  }

  /** Reports whether both webhooks are called, which takes a moment after their configurations were created. */
  private static boolean isCalled() {
    if (client.resource(pod("probe", "app:1.2")).dryRun().create().getMetadata().getLabels().isEmpty()) {
      return false;
    }
    try {
      client.resource(pod("probe", "app")).dryRun().create();
      return false;
    } catch (KubernetesClientException refused) {
      return refused.getMessage().contains("validate.pods.example.com");
    }
  }

  private static Pod pod(String name, String image) {
    return new PodBuilder()
        .withNewMetadata().withNamespace("default").withName(name).endMetadata()
        .withNewSpec().addNewContainer().withName("main").withImage(image).endContainer().endSpec()
        .build();
  }

  @Test
  void aPodGetsTheLabel() {
    Pod created = client.resource(pod("labeled", "registry.example.com/app:1.2")).create();
    assertEquals(Map.of("team", "unknown"), created.getMetadata().getLabels());
  }

  @Test
  void aLabelThatIsThereStays() {
    Pod own = pod("own", "app:1.2").edit().editMetadata().addToLabels("team", "payments").endMetadata().build();
    assertEquals(Map.of("team", "payments"), client.resource(own).create().getMetadata().getLabels());
  }

  @ParameterizedTest
  @ValueSource(strings = {"app", "app:latest", "registry.example.com:5000/app"})
  void anImageWithoutATagIsDenied(String image) {
    var creation = client.resource(pod("denied", image));
    var refused = assertThrows(KubernetesClientException.class, creation::create);
    assertEquals(403, refused.getCode());
    assertEquals(
        "admission webhook \"validate.pods.example.com\" denied the request: main: the image needs a tag",
        refused.getStatus().getMessage());
    assertNull(creation.get());
  }

  /** The informers of fabric8 watch over WebSockets. */
  @Test
  void anInformerShowsWhatBecomesOfThePod() throws Exception {
    BlockingQueue<String> events = new LinkedBlockingQueue<>();
    var handler = new ResourceEventHandler<Pod>() {
      @Override
      public void onAdd(Pod pod) {
        events.add("added, of the team " + pod.getMetadata().getLabels().get("team"));
      }

      @Override
      public void onUpdate(Pod old, Pod pod) {
        events.add("updated, of the team " + pod.getMetadata().getLabels().get("team"));
      }

      @Override
      public void onDelete(Pod pod, boolean isUnknown) {
        events.add("deleted");
      }
    };
    try (var informer = client.pods().inNamespace("default").withLabel("app", "watched").inform(handler)) {
      Pod watched = pod("watched", "app:1.2").edit().editMetadata().addToLabels("app", "watched").endMetadata().build();
      client.resource(watched).create();
      assertEquals("added, of the team unknown", events.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS));
      client.resource(watched).edit(
          pod -> pod.edit().editMetadata().addToLabels("team", "payments").endMetadata().build());
      assertEquals("updated, of the team payments", events.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS));
    }
  }
}
