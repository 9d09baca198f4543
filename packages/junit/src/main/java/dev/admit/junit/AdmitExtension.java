package dev.admit.junit;

import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.IOException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** Resolves parameters of the types {@link AdmitServer} and {@link KubernetesClient}, and stops the server with the test. */
final class AdmitExtension implements ParameterResolver {
  private static final Namespace NAMESPACE = Namespace.create(AdmitExtension.class);

  /** The store closes its resources when the test ends. */
  private record Resource(AdmitServer server) implements ExtensionContext.Store.CloseableResource, AutoCloseable {
    @Override
    public void close() {
      server.close();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == AdmitServer.class || type == KubernetesClient.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    String[] args = AnnotationSupport.findAnnotation(context.getRequiredTestClass(), Admit.class)
        .map(Admit::args)
        .orElse(new String[0]);
    AdmitServer server = context.getStore(NAMESPACE)
        .getOrComputeIfAbsent(AdmitServer.class, key -> start(args), Resource.class)
        .server();
    try {
      return parameter.getParameter().getType() == AdmitServer.class ? server : server.client();
    } catch (IOException error) {
      throw new ParameterResolutionException("create the client: " + error.getMessage(), error);
    }
  }

  private static Resource start(String[] args) {
    try {
      return new Resource(AdmitServer.start(args));
    } catch (IOException error) {
      throw new ParameterResolutionException("start admit: " + error.getMessage(), error);
    }
  }
}
