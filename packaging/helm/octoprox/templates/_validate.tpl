{{/* Refuses values that cannot work together. Included once, by the ConfigMap that every release has. */}}
{{- define "octoprox.validate" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository -}}
{{- fail "image.repository is required: build the image from the Dockerfile of the repository and push it to a registry of your own." -}}
{{- end -}}
{{- if not $values.existingSecret -}}
{{- fail "existingSecret is required: the hub listens on all addresses of the pod and does not start without a token. Create a Secret with the key GATEWAY_TOKEN and name it here." -}}
{{- end -}}
{{- if not $values.existingSecretKeys.gatewayToken -}}
{{- fail "existingSecretKeys.gatewayToken is required: the hub does not start without a token." -}}
{{- end -}}

{{- if $values.state.persistent -}}
{{- $reason := "while state.persistent is true: a state directory belongs to one hub at a time. Set state.persistent=false for hubs without persistent state." -}}
{{- if gt (int $values.replicas) 1 -}}
{{- fail (printf "replicas must be 1 %s" $reason) -}}
{{- end -}}
{{- if $values.autoscaling.enabled -}}
{{- fail (printf "autoscaling.enabled must be false %s" $reason) -}}
{{- end -}}
{{- if $values.podDisruptionBudget.enabled -}}
{{- fail (printf "podDisruptionBudget.enabled must be false %s" $reason) -}}
{{- end -}}
{{- else -}}
{{- if $values.state.existingClaim -}}
{{- fail "state.existingClaim needs state.persistent=true." -}}
{{- end -}}
{{- if $values.workspace.persistent -}}
{{- fail "workspace.persistent needs state.persistent=true. Name a claim that all replicas can mount in workspace.existingClaim instead." -}}
{{- end -}}
{{- if and $values.oauthCallback.enabled (or $values.autoscaling.enabled (gt (int $values.replicas) 1)) -}}
{{- fail "oauthCallback.enabled needs one replica: a login ends at the replica where it began, and browsers reach any of them." -}}
{{- end -}}
{{- end -}}

{{- /* 8 seconds for running calls, 5 for the last traces */ -}}
{{- $stop := add 13 (ternary 0 (int $values.preStopSleepSeconds) $values.state.persistent) -}}
{{- if lt (int $values.terminationGracePeriodSeconds) (int $stop) -}}
{{- fail (printf "terminationGracePeriodSeconds must be at least %d: preStopSleepSeconds, 8 seconds for running calls and 5 for the last traces." $stop) -}}
{{- end -}}

{{- if $values.autoscaling.enabled -}}
{{- with $values.autoscaling -}}
{{- if lt (int .maxReplicas) (int .minReplicas) -}}
{{- fail "autoscaling.maxReplicas must not be less than autoscaling.minReplicas." -}}
{{- end -}}
{{- $requests := default dict $values.resources.requests -}}
{{- if not (or .targetCPUUtilizationPercentage .targetMemoryUtilizationPercentage) -}}
{{- fail "autoscaling needs targetCPUUtilizationPercentage or targetMemoryUtilizationPercentage." -}}
{{- end -}}
{{- if or (and .targetCPUUtilizationPercentage (not $requests.cpu)) (and .targetMemoryUtilizationPercentage (not $requests.memory)) -}}
{{- fail "autoscaling needs resources.requests of the metrics that it uses." -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $values.podDisruptionBudget.enabled -}}
{{- with $values.podDisruptionBudget -}}
{{- if eq (kindIs "invalid" .minAvailable) (kindIs "invalid" .maxUnavailable) -}}
{{- fail "podDisruptionBudget needs minAvailable or maxUnavailable, not both. Set the other to null." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if and $values.ingress.enabled (not $values.ingress.hosts) -}}
{{- fail "ingress.hosts is required: the hub refuses host names that it does not know." -}}
{{- end -}}
{{- if $values.httpRoute.enabled -}}
{{- if not $values.httpRoute.parentRefs -}}
{{- fail "httpRoute.parentRefs is required: name the Gateway of the route." -}}
{{- end -}}
{{- if not $values.httpRoute.hostnames -}}
{{- fail "httpRoute.hostnames is required: the hub refuses host names that it does not know." -}}
{{- end -}}
{{- end -}}
{{- if $values.oauthCallback.enabled -}}
{{- if not (or $values.ingress.enabled $values.httpRoute.enabled $values.oauthCallback.url) -}}
{{- fail "oauthCallback.enabled needs an Ingress, an HTTPRoute or oauthCallback.url." -}}
{{- end -}}
{{- if not (hasSuffix "/auth/callback" (include "octoprox.callbackUrl" .)) -}}
{{- fail "oauthCallback.url must end in /auth/callback." -}}
{{- end -}}
{{- end -}}

{{- range $path, $instead := dict
  "listen" "service.port and listenAddress"
  "admin.host" "service.admin and oauthCallback"
  "admin.port" "service.admin"
  "state_dir" "state"
  "workspace" "workspace"
  "http.allowed_hosts" "allowedHosts"
  "logins.callback_url" "oauthCallback.url"
-}}
{{- if include "octoprox.setting" (dict "settings" $values.settings "path" $path) -}}
{{- fail (printf "settings.%s is set by the chart. Use %s instead." $path $instead) -}}
{{- end -}}
{{- end -}}
{{- if and $values.prompts (include "octoprox.setting" (dict "settings" $values.settings "path" "prompts.folders")) -}}
{{- fail "settings.prompts.folders is set by the chart where prompts is used. Mount your directories with extraVolumes and leave prompts empty, or use prompts only." -}}
{{- end -}}

{{- $hint := "must be a variable such as ${NAME}. Set the variable from a Secret with extraEnv or extraEnvFrom." -}}
{{- range $path := list "llm.key" "github.token" "gitlab.token" "search.brave_api_key" "logins.secret" -}}
{{- $secret := include "octoprox.setting" (dict "settings" $values.settings "path" $path) -}}
{{- if and $secret (not (hasPrefix "${" $secret)) -}}
{{- fail (printf "settings.%s %s" $path $hint) -}}
{{- end -}}
{{- end -}}
{{- range $name, $server := $values.settings.servers -}}
{{- $secret := include "octoprox.setting" (dict "settings" $server "path" "auth.client_secret") -}}
{{- if and $secret (not (hasPrefix "${" $secret)) -}}
{{- fail (printf "settings.servers.%s.auth.client_secret %s" $name $hint) -}}
{{- end -}}
{{- end -}}
{{- range $values.extraEnv -}}
{{- if and .value (regexMatch "(TOKEN|SECRET|PASSWORD|KEY)$" .name) -}}
{{- fail (printf "extraEnv: %s looks like a secret. Use valueFrom with a secretKeyRef." .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The text of the setting at a dotted path; empty if it is not set. */}}
{{- define "octoprox.setting" -}}
{{- $at := .settings -}}
{{- range $key := splitList "." .path -}}
{{- $at = ternary (get (ternary $at dict (kindIs "map" $at)) $key) "" (kindIs "map" $at) -}}
{{- end -}}
{{- with $at }}{{ toString . }}{{ end -}}
{{- end -}}
