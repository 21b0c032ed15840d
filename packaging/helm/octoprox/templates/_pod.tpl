{{- define "octoprox.podTemplate" -}}
metadata:
  labels:
    {{- omit (include "octoprox.labels" . | fromYaml) "helm.sh/chart" "app.kubernetes.io/managed-by" | toYaml | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or .Values.restartOnSettingsChange .Values.podAnnotations }}
  annotations:
    {{- if .Values.restartOnSettingsChange }}
    checksum/settings: {{ include "octoprox.settings" . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "octoprox.serviceAccountName" . }}
  automountServiceAccountToken: false
  # A Service named octoprox would set OCTOPROX_PORT to tcp://….
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- range $field, $id := .Values.securityContext }}
    {{- if not (kindIs "invalid" $id) }}
    {{ $field }}: {{ int64 $id }}
    {{- end }}
    {{- end }}
    {{- if not (kindIs "invalid" .Values.securityContext.fsGroup) }}
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: octoprox
      image: {{ include "octoprox.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: [ALL]
        readOnlyRootFilesystem: true
      env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        # Programs of servers keep their caches there.
        - name: HOME
          value: /var/lib/octoprox
        - name: OCTOPROX_CONFIG
          value: /etc/octoprox/octoprox.yaml
        - name: OCTOPROX_HOST
          value: {{ .Values.listenAddress | quote }}
        - name: OCTOPROX_PORT
          value: "7000"
        - name: OCTOPROX_ADMIN_HOST
          value: {{ ternary .Values.listenAddress "127.0.0.1" (eq (include "octoprox.adminExposed" .) "true") | quote }}
        - name: OCTOPROX_ADMIN_PORT
          value: "3100"
        - name: OCTOPROX_ALLOWED_HOSTS
          value: {{ include "octoprox.allowedHosts" . | quote }}
        # The root of a volume belongs to root; the hub accepts only a directory of its own user.
        - name: OCTOPROX_STATE_DIR
          value: /var/lib/octoprox/state
        - name: OCTOPROX_WORKSPACE
          value: /mnt/workspace
        {{- if .Values.prompts }}
        - name: OCTOPROX_PROMPTS
          value: /etc/octoprox-prompts
        {{- end }}
        {{- if .Values.oauthCallback.enabled }}
        - name: TOOL_GATEWAY_CALLBACK_URL
          value: {{ include "octoprox.callbackUrl" . | quote }}
        {{- end }}
        {{- $variables := dict
          "GATEWAY_TOKEN" .Values.existingSecretKeys.gatewayToken
          "OCTOPROX_ADMIN_TOKEN" .Values.existingSecretKeys.adminToken
          "OCTOPROX_SECRET" .Values.existingSecretKeys.loginSecret }}
        {{- range $variable, $key := $variables }}
        {{- if $key }}
        - name: {{ $variable }}
          valueFrom:
            secretKeyRef:
              name: {{ $.Values.existingSecret }}
              key: {{ $key }}
        {{- end }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 7000
        {{- if include "octoprox.adminExposed" . }}
        - name: admin
          containerPort: 3100
        {{- end }}
      startupProbe:
        {{- include "octoprox.probe" (dict "path" "/health" "timing" .Values.probes.startup) | nindent 8 }}
      livenessProbe:
        {{- include "octoprox.probe" (dict "path" "/health" "timing" .Values.probes.liveness) | nindent 8 }}
      readinessProbe:
        {{- include "octoprox.probe" (dict "path" "/ready" "timing" .Values.probes.readiness) | nindent 8 }}
      {{- if and (not .Values.state.persistent) .Values.preStopSleepSeconds }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.preStopSleepSeconds }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        # No subPath: it would stop updates of the file.
        - name: settings
          mountPath: /etc/octoprox
          readOnly: true
        {{- if .Values.prompts }}
        - name: prompts
          mountPath: /etc/octoprox-prompts
          readOnly: true
        {{- end }}
        - name: state
          mountPath: /var/lib/octoprox
        - name: workspace
          mountPath: /mnt/workspace
        - name: tmp
          mountPath: /tmp
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "octoprox.fullname" . }}
    {{- if .Values.prompts }}
    - name: prompts
      configMap:
        name: {{ include "octoprox.fullname" . }}-prompts
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ .Values.emptyDirSizes.tmp }}
    {{- if .Values.state.existingClaim }}
    - name: state
      persistentVolumeClaim:
        claimName: {{ .Values.state.existingClaim }}
    {{- else if not .Values.state.persistent }}
    - name: state
      emptyDir:
        sizeLimit: {{ .Values.emptyDirSizes.state }}
    {{- end }}
    {{- if .Values.workspace.existingClaim }}
    - name: workspace
      persistentVolumeClaim:
        claimName: {{ .Values.workspace.existingClaim }}
    {{- else if not .Values.workspace.persistent }}
    - name: workspace
      emptyDir:
        sizeLimit: {{ .Values.emptyDirSizes.workspace }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{- toYaml . | nindent 6 }}
      {{- if not .labelSelector }}
      labelSelector:
        matchLabels:
          {{- include "octoprox.selectorLabels" $ | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/* The kubelet sends the address of the pod as Host, which the hub may refuse. */}}
{{- define "octoprox.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  httpHeaders:
    - name: Host
      value: localhost
{{ toYaml .timing }}
{{- end -}}
