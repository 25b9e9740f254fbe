package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	kedav1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	istio "istio.io/client-go/pkg/apis/networking/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kfake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kjson "sigs.k8s.io/json"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/ome/pkg/acceleratorclassselector"
	"sigs.k8s.io/ome/pkg/apis/ome/v1beta1"
	"sigs.k8s.io/ome/pkg/constants"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/controllerconfig"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/inferenceservice"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/inferenceservice/components"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/inferenceservice/status"
	"sigs.k8s.io/ome/pkg/controller/v1beta1/inferenceservice/utils"
	"sigs.k8s.io/ome/pkg/runtimeselector"
	"sigs.k8s.io/ome/pkg/webhook/admission/isvc"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1beta1.AddToScheme, clientgoscheme.AddToScheme, lws.AddToScheme, kedav1.AddToScheme, ray.AddToScheme, istio.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}()

// read decodes the documents of OME's kinds; what stands in no namespace goes to default.
func read(a *answer, text string) (service *v1beta1.InferenceService, others []client.Object, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		var is metav1.TypeMeta
		if err := yaml.Unmarshal(document, &is); err != nil {
			return nil, nil, err
		}
		if is.APIVersion != v1beta1.SchemeGroupVersion.String() || !scheme.Recognizes(is.GroupVersionKind()) {
			continue
		}
		object, err := scheme.New(is.GroupVersionKind())
		if err != nil {
			return nil, nil, err
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, nil, err
		}
		unknown, err := kjson.UnmarshalStrict(data, object)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", is.Kind, err)
		}
		for _, field := range unknown {
			a.UnknownFields = append(a.UnknownFields, is.Kind+": "+field.Error())
		}
		read, ok := object.(client.Object)
		if !ok {
			continue // a list
		}
		if !strings.HasPrefix(is.Kind, "Cluster") && is.Kind != "AcceleratorClass" && read.GetNamespace() == "" {
			read.SetNamespace("default")
		}
		found, ok := read.(*v1beta1.InferenceService)
		switch {
		case !ok:
			others = append(others, read)
		case service != nil:
			return nil, nil, errors.New("more than one InferenceService")
		default:
			service = found
		}
	}
	if service == nil {
		return nil, nil, errors.New("no InferenceService")
	}
	return service, others, nil
}

// ask fills the answer. An error is one that keeps OME from being asked; what OME itself says is in the answer.
func ask(a *answer, asked request) error {
	ctx := context.Background()
	service, others, err := read(a, asked.YAML)
	if err != nil {
		return err
	}
	clientset := kfake.NewSimpleClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: constants.InferenceServiceConfigMapName, Namespace: constants.OMENamespace},
		Data: map[string]string{
			controllerconfig.DeployConfigName:     `{"defaultDeploymentMode": "RawDeployment"}`,
			controllerconfig.IngressConfigKeyName: `{"ingressDomain": "svc.cluster.local", "disableIstioVirtualHost": true, "disableIngressCreation": true}`,
		},
	})
	deploy, err := controllerconfig.NewDeployConfig(clientset)
	if err != nil {
		return err
	}
	config, err := controllerconfig.NewInferenceServicesConfig(clientset)
	if err != nil {
		return err
	}
	hasModel := service.Spec.Model != nil && holds(others, service)
	if asked.Reconcile && service.Spec.Model != nil && !hasModel {
		others = append(others, &v1beta1.ClusterBaseModel{
			ObjectMeta: metav1.ObjectMeta{Name: service.Spec.Model.Name},
			Spec:       v1beta1.BaseModelSpec{ModelFormat: v1beta1.ModelFormat{Name: "safetensors"}},
		})
		hasModel = true
	}
	if err := isvc.DefaultInferenceService(ctx, nil, service, deploy); err != nil {
		a.fail("webhook", err)
		return nil
	}
	if utils.GetDeploymentMode(service.Annotations, deploy) == constants.VirtualDeployment {
		return nil // OME's controller makes nothing of it
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(others...).WithObjects(service.DeepCopy()).
		WithStatusSubresource(&v1beta1.InferenceService{}).Build()
	selector := runtimeselector.New(c)
	accelerators := acceleratorclassselector.New(c)

	if asked.Reconcile {
		reconciler := &inferenceservice.InferenceServiceReconciler{
			Client: c, ClientConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Clientset: clientset, Log: logr.Discard(), Scheme: scheme,
			Recorder: record.NewFakeRecorder(1000), StatusManager: status.NewStatusReconciler(),
			RuntimeSelector: selector, AcceleratorClassSelector: accelerators,
		}
		if err := guard(func() error {
			_, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: service.Namespace, Name: service.Name}})
			return err
		}); err != nil {
			a.fail("reconcile", err)
		}
	}

	// The steps of InferenceServiceReconciler.Reconcile, in its order. After the whole of it they only tell the modes.
	var model *v1beta1.BaseModelSpec
	var modelMeta *metav1.ObjectMeta
	if hasModel {
		if model, modelMeta, err = utils.ReconcileBaseModel(c, service); err != nil {
			a.fail("model", err)
			return collect(ctx, a, c)
		}
	}
	named := service.Spec.Runtime != nil && service.Spec.Runtime.Name != ""
	var spec *v1beta1.ServingRuntimeSpec
	var name string
	var ofCluster bool
	if named {
		name = service.Spec.Runtime.Name
		spec, ofCluster, err = selector.GetRuntime(ctx, name, service.Namespace)
		if err == nil && spec.IsDisabled() {
			err = &runtimeselector.RuntimeDisabledError{RuntimeName: name, IsCluster: ofCluster}
		}
	} else if model != nil {
		var selected *runtimeselector.RuntimeSelection
		if selected, err = selector.SelectRuntime(ctx, model, service); err == nil {
			spec, name, ofCluster = selected.Spec, selected.Name, selected.IsCluster
		}
	} // with neither, OME would end here: it is asked what it makes of the service alone
	if err != nil {
		a.fail("runtime", err)
		return collect(ctx, a, c)
	}
	if spec != nil {
		a.Runtime = map[bool]string{true: "ClusterServingRuntime/", false: "ServingRuntime/"}[ofCluster] + name
	}

	engine, decoder, router, err := utils.MergeRuntimeSpecs(service, spec, logr.Discard())
	if err != nil {
		a.fail("merge", err)
		return collect(ctx, a, c)
	}
	engineMode, decoderMode, routerMode, err := utils.DetermineDeploymentModes(engine, decoder, router, spec)
	if err != nil {
		a.fail("mode", err)
		return collect(ctx, a, c)
	}
	var format *v1beta1.SupportedModelFormat
	if model != nil && spec != nil {
		format = selector.GetSupportedModelFormat(ctx, spec, model, named)
	}
	accelerator := func(of v1beta1.ComponentType) (*v1beta1.AcceleratorClassSpec, string) {
		if spec == nil {
			return nil, ""
		}
		class, name, err := accelerators.GetAcceleratorClass(ctx, service, spec, of)
		if err != nil {
			a.fail("acceleratorClass", err)
		}
		if class == nil {
			return nil, ""
		}
		return &class.Spec, name
	}
	build := func(of v1beta1.ComponentType, mode constants.DeploymentModeType, component components.Component) {
		a.Modes[of] = mode
		if asked.Reconcile {
			return
		}
		if err := guard(func() error { _, err := component.Reconcile(service); return err }); err != nil {
			a.fail(string(of), err)
		}
	}
	service.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatusSpec{}
	builders := components.NewComponentBuilderFactory(c, clientset, scheme, config)
	if engine != nil {
		class, className := accelerator(v1beta1.EngineComponent)
		build(v1beta1.EngineComponent, engineMode,
			builders.CreateEngineComponent(engineMode, model, modelMeta, engine, spec, name, format, class, className))
	}
	if decoder != nil {
		class, className := accelerator(v1beta1.DecoderComponent)
		build(v1beta1.DecoderComponent, decoderMode,
			builders.CreateDecoderComponent(decoderMode, model, modelMeta, decoder, spec, name, format, class, className))
	}
	if router != nil {
		build(v1beta1.RouterComponent, routerMode,
			builders.CreateRouterComponent(routerMode, model, modelMeta, router, spec, name))
	}
	return collect(ctx, a, c)
}

// holds says whether the service's model is among the objects, where OME looks for it.
func holds(objects []client.Object, service *v1beta1.InferenceService) bool {
	for _, object := range objects {
		switch object.(type) {
		case *v1beta1.BaseModel, *v1beta1.ClusterBaseModel:
			if object.GetName() == service.Spec.Model.Name && (object.GetNamespace() == "" || object.GetNamespace() == service.Namespace) {
				return true
			}
		}
	}
	return false
}

// collect takes what OME has written.
func collect(ctx context.Context, a *answer, c client.Client) error {
	sets, deployments := &lws.LeaderWorkerSetList{}, &appsv1.DeploymentList{}
	if err := errors.Join(c.List(ctx, sets), c.List(ctx, deployments)); err != nil {
		return err
	}
	for _, set := range sets.Items {
		set.APIVersion, set.Kind = lws.GroupVersion.String(), "LeaderWorkerSet"
		a.LeaderWorkerSets = append(a.LeaderWorkerSets, set)
	}
	for _, deployment := range deployments.Items {
		deployment.APIVersion, deployment.Kind = "apps/v1", "Deployment"
		a.Deployments = append(a.Deployments, deployment)
	}
	return nil
}
