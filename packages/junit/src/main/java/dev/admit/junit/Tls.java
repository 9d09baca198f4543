package dev.admit.junit;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Reads PEM files. */
final class Tls {
  private Tls() {}

  /** Returns a context for a client that trusts the certificates. */
  static SSLContext client(String ca) throws IOException {
    try {
      KeyStore trusted = empty();
      for (Certificate certificate : certificates(ca)) {
        trusted.setCertificateEntry("ca" + trusted.size(), certificate);
      }
      var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      managers.init(trusted);
      SSLContext tls = SSLContext.getInstance("TLS");
      tls.init(null, managers.getTrustManagers(), null);
      return tls;
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }

  /** Returns a context for a server with {@code tls.crt} and {@code tls.key}, an ECDSA key, in a directory. */
  static SSLContext server(Path directory) throws IOException {
    try {
      String pem = Files.readString(directory.resolve("tls.key")).replaceAll("-----.*-----|\\s", "");
      var key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
      Certificate[] chain =
          certificates(Files.readString(directory.resolve("tls.crt"))).toArray(new Certificate[0]);
      KeyStore keys = empty();
      keys.setKeyEntry("tls", key, new char[0], chain);
      var managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      managers.init(keys, new char[0]);
      SSLContext tls = SSLContext.getInstance("TLS");
      tls.init(managers.getKeyManagers(), null, null);
      return tls;
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }

  private static KeyStore empty() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    return store;
  }

  private static Collection<? extends Certificate> certificates(String pem) throws GeneralSecurityException {
    var stream = new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII));
    return CertificateFactory.getInstance("X.509").generateCertificates(stream);
  }
}
