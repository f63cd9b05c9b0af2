{{- define "ottla.name" -}}
{{- if contains "ottla" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-ottla{{ end }}
{{- end }}

{{- define "ottla.labels" -}}
app.kubernetes.io/name: ottla
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ottla.allLabels" -}}
{{ include "ottla.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "ottla.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The brokers, by the names of their pods. */}}
{{- define "ottla.servers" -}}
{{- $name := include "ottla.name" . -}}
{{- $servers := list -}}
{{- range $index := until (int .Values.replicas) -}}
{{- $servers = append $servers (printf "%s-%d.%s-headless:9092" $name $index $name) -}}
{{- end -}}
{{- join "," $servers -}}
{{- end }}

{{- define "ottla.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "ottla.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "ottla.validate" -}}
{{- if and .Values.insecure .Values.tls.secretName -}}
{{- fail "insecure and tls.secretName exclude each other" -}}
{{- end -}}
{{- if not (or .Values.insecure .Values.tls.secretName) -}}
{{- fail "set tls.secretName to a secret with certificates, or insecure=true to let everyone in" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.insecure) -}}
{{- fail "gateway.enabled needs insecure=true: the gateway cannot log in" -}}
{{- end -}}
{{- end }}
