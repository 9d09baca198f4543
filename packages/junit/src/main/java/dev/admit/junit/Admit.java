package dev.admit.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Starts an API server for each test that has a parameter of the type {@link AdmitServer} or {@link
 * io.fabric8.kubernetes.client.KubernetesClient}. In a test with both parameters, the client uses that server.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(AdmitExtension.class)
public @interface Admit {
  /** Returns the arguments of {@code admit serve}. */
  String[] args() default {};
}
