{{- define "octoprox.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 52 characters: a StatefulSet adds a hash to it in a label of 63. */}}
{{- define "octoprox.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "octoprox.selectorLabels" -}}
app.kubernetes.io/name: {{ include "octoprox.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "octoprox.labels" -}}
{{ include "octoprox.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: hub
app.kubernetes.io/part-of: octoprox
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "octoprox.metadata" -}}
name: {{ include "octoprox.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "octoprox.labels" . | nindent 2 }}
{{- end -}}

{{- define "octoprox.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "octoprox.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "octoprox.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" where the admin port leaves the pod. */}}
{{- define "octoprox.adminExposed" -}}
{{- if or .Values.service.admin.enabled .Values.oauthCallback.enabled }}true{{ end -}}
{{- end -}}

{{/* Host names under which clients outside the cluster call the hub, as a JSON array. */}}
{{- define "octoprox.publicHosts" -}}
{{- $hosts := list -}}
{{- if .Values.ingress.enabled }}{{ $hosts = concat $hosts .Values.ingress.hosts }}{{ end -}}
{{- if .Values.httpRoute.enabled }}{{ $hosts = concat $hosts .Values.httpRoute.hostnames }}{{ end -}}
{{- $hosts | uniq | toJson -}}
{{- end -}}

{{- define "octoprox.callbackUrl" -}}
{{- $hosts := include "octoprox.publicHosts" . | fromJsonArray -}}
{{- if .Values.oauthCallback.url -}}
{{ .Values.oauthCallback.url }}
{{- else -}}
https://{{ first $hosts }}/auth/callback
{{- end -}}
{{- end -}}

{{/* Other names get status 421. Prometheus and load balancers use the address of the pod. */}}
{{- define "octoprox.allowedHosts" -}}
{{- $name := include "octoprox.fullname" . -}}
{{- $namespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $hosts := list $name $namespace (printf "%s.svc" $namespace) (printf "%s.svc.%s" $namespace .Values.clusterDomain) "$(POD_IP)" -}}
{{- if contains ":" .Values.listenAddress }}{{ $hosts = append $hosts "[$(POD_IP)]" }}{{ end -}}
{{- $hosts = concat $hosts (include "octoprox.publicHosts" . | fromJsonArray) .Values.allowedHosts -}}
{{- $hosts | uniq | join "," -}}
{{- end -}}

{{- define "octoprox.settings" -}}
{{ toYaml .Values.settings }}
{{- end -}}
