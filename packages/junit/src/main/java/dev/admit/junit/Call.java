package dev.admit.junit;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/**
 * A call of a webhook.
 *
 * @param type {@code mutating} or {@code validating}
 * @param configuration the name of the webhook configuration
 * @param webhook the name of the webhook
 * @param round 1, or 2 for a reinvocation
 * @param outcome {@code allowed}, {@code denied}, {@code failedOpen}, {@code failedClosed}, or {@code refused}
 * @param message why the webhook did not allow the request; null if it did
 * @param patch the JSON Patch that the webhook returned; null if there is none
 * @param changed whether the patch changed the object
 * @param changes the changes to the object
 * @param warnings the warnings that the webhook returned
 * @param request the request of the AdmissionReview as the webhook received it
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record Call(
    String type,
    String configuration,
    String webhook,
    int round,
    String outcome,
    String message,
    JsonNode patch,
    boolean changed,
    List<Change> changes,
    List<String> warnings,
    JsonNode request) {

  /**
   * A change of one field by a call.
   *
   * @param path the path of the field, such as {@code spec.containers[1]}
   * @param from the value before the call; null if the field was missing
   * @param to the value after the call; null if the field was removed
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Change(String path, JsonNode from, JsonNode to) {}

  /** Returns the object as the webhook received it. */
  public JsonNode object() {
    return request.path("object");
  }
}
