// Command manager runs OME 1.2.2's InferenceService controller and the webhooks of InferenceServices against an API
// server, set up as OME's own cmd/manager sets them up, and nothing else of OME: no controllers of models, no other
// webhooks, no certificates of its own.
//
// What it needs to be there when it starts: OME's CRDs (config/crd/full in the folder of the module, which
// `go mod download -json github.com/sgl-project/ome@v1.2.2` tells), the CRD of LeaderWorkerSets, and the ConfigMap
// inferenceservice-config in the namespace ome (config/configmap/inferenceservice.yaml there). The paths of the webhooks
// are those of config/webhook/manifests.yaml.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"sigs.k8s.io/ome/pkg/apis/ome/v1beta1"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/controllerconfig"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/inferenceservice"
	"sigs.k8s.io/ome/pkg/runtimeselector"
	"sigs.k8s.io/ome/pkg/webhook/admission/isvc"
)

const host = "127.0.0.1"

// The flag --kubeconfig is controller-runtime's.
var (
	webhookPort = flag.Int("webhook-port", 9443, "port of the webhooks, on "+host)
	certDir     = flag.String("webhook-cert-dir", "", "folder with tls.crt and tls.key of the webhooks")
	probePort   = flag.Int("health-probe-port", 8081, "port of /healthz and /readyz, on "+host)
)

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, clientgoscheme.AddToScheme, lws.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		WebhookServer:          webhook.NewServer(webhook.Options{Host: host, Port: *webhookPort, CertDir: *certDir}),
		HealthProbeBindAddress: fmt.Sprintf("%s:%d", host, *probePort),
	})
	if err != nil {
		return err
	}

	deploy, err := controllerconfig.NewDeployConfig(clientset)
	if err != nil {
		return err
	}
	ingress, err := controllerconfig.NewIngressConfig(clientset)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	if err := (&inferenceservice.InferenceServiceReconciler{
		Client:    manager.GetClient(),
		Clientset: clientset,
		Log:       ctrl.Log.WithName("InferenceService"),
		Scheme:    scheme,
		Recorder:  events.NewRecorder(scheme, corev1.EventSource{Component: "v1beta1Controllers"}),
	}).SetupWithManager(manager, deploy, ingress); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(manager).
		For(&v1beta1.InferenceService{}).
		WithDefaulter(&isvc.InferenceServiceDefaulter{Client: manager.GetClient(), ClientSet: clientset}).
		WithValidator(&isvc.InferenceServiceValidator{Client: manager.GetClient(), RuntimeSelector: runtimeselector.New(manager.GetClient())}).
		Complete(); err != nil {
		return err
	}

	started := func(request *http.Request) error { return manager.GetWebhookServer().StartedChecker()(request) }
	if err := manager.AddHealthzCheck("healthz", started); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", started); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ome-manager:", err)
		os.Exit(1)
	}
}
