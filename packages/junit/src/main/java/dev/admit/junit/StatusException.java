package dev.admit.junit;

import java.io.IOException;

/** Signals that the server rejected a request. The message is that of the server. */
public final class StatusException extends IOException {
  private static final long serialVersionUID = 1;

  private final int code;

  StatusException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** Returns the HTTP status code. */
  public int code() {
    return code;
  }
}
