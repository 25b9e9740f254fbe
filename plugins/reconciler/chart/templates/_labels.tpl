{{- /* Of every object but the policy, which is as `postrender policy` prints it. */ -}}
{{- define "postrender-reconciler.labels" -}}
app.kubernetes.io/name: postrender-reconciler
app.kubernetes.io/part-of: postrender
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
