package admittest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

const fromSource = "build admit from source, and put it on PATH or set ADMIT to its path: " +
	"cargo install --locked --git https://github.com/admit-dev/admit admit"

// Binary returns the path of the admit binary: the value of the environment variable ADMIT, admit on PATH, or the
// release [Version] in the user's cache directory, which it downloads if necessary.
func Binary() (string, error) {
	if path := os.Getenv("ADMIT"); path != "" {
		path, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("invalid environment variable ADMIT: %w", err)
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath("admit"); err == nil {
		return filepath.Abs(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find admit: %w; %s", err, fromSource)
	}
	return release{
		version:   Version,
		url:       "https://github.com/admit-dev/admit/releases/download/v" + Version,
		checksums: checksums,
		cache:     filepath.Join(cache, "admit", "releases"),
	}.binary(runtime.GOOS, runtime.GOARCH)
}

// release is a release whose binaries can be downloaded.
type release struct {
	version   string
	url       string            // the directory of the archives
	checksums map[string]string // SHA-256 checksums in hexadecimal, by archive
	cache     string
}

// binary returns the path of the release's binary in the cache, and downloads it if it is not there.
func (r release) binary(goos, goarch string) (string, error) {
	archives := map[string]string{
		"linux/amd64":  "admit-x86_64-linux.tar.gz",
		"linux/arm64":  "admit-aarch64-linux.tar.gz",
		"darwin/amd64": "admit-x86_64-darwin.tar.gz",
		"darwin/arm64": "admit-arm64-darwin.tar.gz",
	}
	archive := archives[goos+"/"+goarch]
	checksum := r.checksums[archive]
	if checksum == "" {
		return "", fmt.Errorf("admit %s has no released binary for %s/%s; %s", r.version, goos, goarch, fromSource)
	}
	// The path contains the checksum: a binary that is there comes from the expected archive.
	path := filepath.Join(r.cache, r.version+"-"+checksum[:16], "admit")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	content, err := download(r.url + "/" + archive)
	if err != nil {
		return "", fmt.Errorf("download admit: %w; without network access, %s", err, fromSource)
	}
	sum := sha256.Sum256(content)
	if actual := hex.EncodeToString(sum[:]); actual != checksum {
		return "", fmt.Errorf("wrong checksum of %s/%s: expected SHA-256 %s, got %s", r.url, archive, checksum, actual)
	}
	binary, err := extract(content)
	if err != nil {
		return "", fmt.Errorf("unpack %s/%s: %w", r.url, archive, err)
	}
	return path, install(path, binary)
}

func download(url string) ([]byte, error) {
	client := http.Client{Timeout: 5 * time.Minute}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// extract returns the file admit in a .tar.gz archive.
func extract(archive []byte) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the archive does not contain the file admit")
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg && filepath.Base(header.Name) == "admit" {
			return io.ReadAll(files)
		}
	}
}

// install writes an executable file. The path never has a partial file, even if several processes write it.
func install(path string, content []byte) (err error) {
	directory := filepath.Dir(path)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(directory, ".admit-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
