package dev.admit.testcontainers;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * An API server that calls admission webhooks as kube-apiserver does, in a container. Use {@code admit-junit} instead
 * where tests can run the binary: it starts faster and records webhook calls.
 */
public class AdmitContainer extends GenericContainer<AdmitContainer> {
  /**
   * The host name under which the API server reaches the machine that runs the tests. A webhook in a test listens on
   * all interfaces, its certificate has this name, and its configuration has a URL with this host.
   */
  public static final String HOST_ADDRESS = "host.docker.internal";

  private static final int PORT = 6443;
  private static final String FILE = "/kubeconfig";

  /** Creates a container from an image of admit, without starting it. */
  public AdmitContainer(String image) {
    this(DockerImageName.parse(image));
  }

  /** Creates a container from an image of admit, without starting it. */
  public AdmitContainer(DockerImageName image) {
    super(image);
    withExposedPorts(PORT);
    withExtraHost(HOST_ADDRESS, "host-gateway");
    // The image has no directory that its default user can write.
    withCreateContainerCmdModifier(command -> command.withUser("0:0"));
    // Printed when the kubeconfig is complete.
    waitingFor(Wait.forLogMessage(".*KUBECONFIG=" + FILE + ".*", 1));
    withArguments();
  }

  /** Sets the additional flags of {@code admit serve}, such as {@code --with-controllers}. */
  public AdmitContainer withArguments(String... arguments) {
    var all = new ArrayList<>(
        List.of("serve", "--listen=0.0.0.0:" + PORT, "--allow-remote", "--kubeconfig-out=" + FILE));
    all.addAll(List.of(arguments));
    return withCommand(all.toArray(String[]::new));
  }

  /** Returns a kubeconfig for a cluster administrator, with the published address of the running server. */
  public String kubeconfig() {
    String kubeconfig =
        copyFileFromContainer(FILE, stream -> new String(stream.readAllBytes(), StandardCharsets.UTF_8));
    // The certificate of the server has the address 127.0.0.1.
    boolean isLocal = getHost().equals("localhost");
    String address = "https://" + (isLocal ? "127.0.0.1" : getHost()) + ":" + getMappedPort(PORT);
    return kubeconfig.replace(
        "https://127.0.0.1:" + PORT, isLocal ? address : address + "\n    tls-server-name: 127.0.0.1");
  }
}
