package admittest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const content = "#!/bin/sh\necho admit\n"

// releaseServer serves an archive with a binary for linux/amd64, and returns its release and its checksum.
func releaseServer(t *testing.T) (release, string) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "admit", Mode: 0o755, Size: int64(len(content))}
	if err := files.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	files.Close()
	zipped.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v9.9.9/admit-x86_64-linux.tar.gz" {
			http.NotFound(w, r)
			return
		}
		w.Write(archive.Bytes())
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(archive.Bytes())
	checksum := hex.EncodeToString(sum[:])
	return release{
		version:   "9.9.9",
		url:       server.URL + "/v9.9.9",
		checksums: map[string]string{"admit-x86_64-linux.tar.gz": checksum},
		cache:     t.TempDir(),
	}, checksum
}

func TestDownloadedBinaryIsCached(t *testing.T) {
	release, checksum := releaseServer(t)
	path, err := release.binary("linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if expected := filepath.Join(release.cache, "9.9.9-"+checksum[:16], "admit"); path != expected {
		t.Errorf("the path is %s, not %s", path, expected)
	}
	if written, err := os.ReadFile(path); err != nil || string(written) != content {
		t.Errorf("the binary contains %q (%v)", written, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v (%v)", info.Mode(), err)
	}
	release.url = "http://127.0.0.1:1" // No network is needed from now on.
	if again, err := release.binary("linux", "amd64"); err != nil || again != path {
		t.Errorf("the second call returns %s (%v)", again, err)
	}
}

func TestParallelFirstStartsInstallOneBinary(t *testing.T) {
	release, _ := releaseServer(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			path, err := release.binary("linux", "amd64")
			if err != nil {
				t.Error(err)
				return
			}
			if written, err := os.ReadFile(path); err != nil || string(written) != content {
				t.Errorf("the binary contains %q (%v)", written, err)
			}
		})
	}
	all.Wait()
	entries, err := filepath.Glob(filepath.Join(release.cache, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(release.cache, "*", ".admit-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || len(hidden) != 0 {
		t.Errorf("the cache contains %v %v", entries, hidden)
	}
}

func TestWrongChecksumIsRejected(t *testing.T) {
	release, checksum := releaseServer(t)
	expected := strings.Repeat("0", 64)
	release.checksums = map[string]string{"admit-x86_64-linux.tar.gz": expected}
	_, err := release.binary("linux", "amd64")
	want := "wrong checksum of " + release.url + "/admit-x86_64-linux.tar.gz: expected SHA-256 " + expected + ", got " + checksum
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %s", err, want)
	}
	if entries, err := os.ReadDir(release.cache); err != nil || len(entries) != 0 {
		t.Errorf("the cache contains %v (%v)", entries, err)
	}
}

func TestUnsupportedPlatformErrorSaysHowToBuild(t *testing.T) {
	release, _ := releaseServer(t)
	_, err := release.binary("plan9", "mips")
	want := "admit 9.9.9 has no released binary for plan9/mips; " + fromSource
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %s", err, want)
	}
}

func TestFailedDownloadErrorNamesTheURL(t *testing.T) {
	release, _ := releaseServer(t)
	release.url = strings.Replace(release.url, "v9.9.9", "v9.9.8", 1)
	_, err := release.binary("linux", "amd64")
	want := "GET " + release.url + "/admit-x86_64-linux.tar.gz: 404 Not Found"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v; it does not contain %s", err, want)
	}
}

func TestInvalidADMITIsAnError(t *testing.T) {
	t.Setenv("ADMIT", filepath.Join(t.TempDir(), "missing"))
	if _, err := Binary(); err == nil || !strings.Contains(err.Error(), "invalid environment variable ADMIT") {
		t.Errorf("the error is %v", err)
	}
}
