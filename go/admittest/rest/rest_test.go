package rest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admit-dev/admit/go/admittest"
)

func TestConfigIsThatOfAnAdministrator(t *testing.T) {
	if _, err := admittest.Binary(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	client, err := kubernetes.NewForConfig(Config(admittest.Start(t)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
