{{/* Names and labels. */}}
{{- define "larder.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "larder.fullname" -}}
{{- $name := include "larder.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "larder.selectorLabels" -}}
app.kubernetes.io/name: {{ include "larder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "larder.labels" -}}
{{ include "larder.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}

{{/* The metadata of an object: a dict with root, and of choice name, namespace, labels, annotations. */}}
{{- define "larder.metadata" -}}
{{- $root := .root -}}
name: {{ default (include "larder.fullname" $root) .name }}
namespace: {{ default $root.Release.Namespace .namespace | quote }}
labels:
  {{- include "larder.labels" $root | nindent 2 }}
  {{- with .labels }}
  {{- tpl (toYaml .) $root | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) (default (dict) $root.Values.commonAnnotations) }}
{{- with $annotations }}
annotations:
  {{- tpl (toYaml .) $root | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "larder.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry -}}
{{- with $registry }}{{ . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end -}}
{{- end -}}

{{- define "larder.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "larder.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "larder.authSecret" -}}
{{- default (printf "%s-auth" (include "larder.fullname" .)) .Values.auth.existingPasswordSecret -}}
{{- end -}}

{{/* Refuses values that exclude each other, with a sentence that says what to do. */}}
{{- define "larder.check" -}}
{{- if not (has .Values.architecture (list "standalone" "high-availability")) -}}
{{- fail (printf "architecture: %q is neither standalone nor high-availability" .Values.architecture) -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (ne .Values.architecture "high-availability") -}}
{{- fail "autoscaling.enabled: needs architecture: high-availability" -}}
{{- end -}}
{{- if and .Values.auth.enabled (not .Values.auth.existingPasswordSecret) (not (and .Values.auth.username .Values.auth.password)) -}}
{{- fail "auth.enabled: give auth.username and auth.password, or auth.existingPasswordSecret with a key auth-file" -}}
{{- end -}}
{{- if and .Values.memoryFile.enabled .Values.stateFile.enabled -}}
{{- fail "memoryFile.enabled and stateFile.enabled exclude each other: give one" -}}
{{- end -}}
{{- if and .Values.stateFile.enabled (not (and .Values.persistence.enabled .Values.ssd.enabled)) -}}
{{- fail "stateFile.enabled: a pod's end empties an emptyDir; give persistence.enabled and ssd.enabled too" -}}
{{- end -}}
{{- if and .Values.stateFile.enabled .Values.ssd.blockMode -}}
{{- fail "stateFile.enabled: a block device has no files; leave out ssd.blockMode" -}}
{{- end -}}
{{- if and .Values.ssd.blockMode (not .Values.persistence.enabled) -}}
{{- fail "ssd.blockMode: give persistence.enabled and a storage class with block volumes" -}}
{{- end -}}
{{- if and .Values.volumePermissions .Values.volumePermissions.enabled -}}
{{- fail "volumePermissions.enabled: leave it out; podSecurityContext.fsGroup gives the volume to the daemon" -}}
{{- end -}}
{{- end -}}

{{/* The options of the daemon, as a list. */}}
{{- define "larder.args" -}}
{{- $args := list -}}
{{- $own := list -}}
{{- range .Values.args -}}
  {{- if or $.Values.command (ne . "/run.sh") -}}
    {{- $own = concat $own (ternary (list (tpl . $)) (splitList " " (tpl . $) | compact) (not (empty $.Values.command))) -}}
  {{- end -}}
{{- end -}}
{{- if not .Values.command -}}
  {{- $args = append $args "--listen=*" -}}
  {{- $args = append $args (printf "--port=%v" .Values.containerPorts.memcached) -}}
  {{- $memory := .Values.memoryLimit -}}
  {{- range .Values.extraEnvVars -}}
    {{- if eq .name "MEMCACHED_CACHE_SIZE" -}}{{- $memory = printf "%vm" .value -}}{{- end -}}
  {{- end -}}
  {{- $args = append $args (printf "--memory-limit=%v" $memory) -}}
  {{- range .Values.extraEnvVars -}}
    {{- if eq .name "MEMCACHED_MAX_CONNECTIONS" -}}{{- $args = append $args (printf "--conn-limit=%v" .value) -}}{{- end -}}
    {{- if eq .name "MEMCACHED_THREADS" -}}{{- $args = append $args (printf "--threads=%v" .value) -}}{{- end -}}
    {{- if eq .name "MEMCACHED_MAX_ITEM_SIZE" -}}{{- $args = append $args (printf "--max-item-size=%v" .value) -}}{{- end -}}
  {{- end -}}
  {{- if .Values.auth.enabled -}}
    {{- $args = concat $args (list "--auth-file=/auth/auth-file" "--enable-sasl") -}}
  {{- else -}}
    {{- $args = append $args "--insecure-listen" -}}
  {{- end -}}
  {{- if not .Values.ssd.enabled -}}
    {{- $args = append $args "--ssd=none" -}}
  {{- else if .Values.ssd.blockMode -}}
    {{- $args = append $args "--ssd=/dev/larder" -}}
  {{- else -}}
    {{- $args = append $args (printf "--ssd=/data/larder.ssd:%v" .Values.ssd.size) -}}
  {{- end -}}
  {{- with .Values.ssd.endurance -}}{{- $args = append $args (printf "--ssd-endurance=%v" .) -}}{{- end -}}
  {{- with .Values.ssd.writeLimit -}}{{- $args = append $args (printf "--ssd-write-limit=%v" .) -}}{{- end -}}
  {{- if .Values.memoryFile.enabled -}}{{- $args = append $args "--memory-file=/memory/larder.memory" -}}{{- end -}}
  {{- if .Values.stateFile.enabled -}}{{- $args = append $args "--state-file=/data/larder.state" -}}{{- end -}}
  {{- if .Values.metrics.enabled -}}
    {{- $args = append $args (printf "--http=0.0.0.0:%v" .Values.metrics.containerPorts.metrics) -}}
    {{- if .Values.metrics.existingTokenSecret -}}
      {{- $args = append $args "--http-token-file=/token/token" -}}
    {{- else -}}
      {{- $args = append $args "--http-open" -}}
    {{- end -}}
  {{- end -}}
  {{- range .Values.extraArgs -}}{{- $args = append $args (tpl . $) -}}{{- end -}}
{{- end -}}
{{- toYaml (concat $args $own) -}}
{{- end -}}

{{/* The times of a probe: all of its values but `enabled`. */}}
{{- define "larder.times" -}}
{{- toYaml (omit . "enabled") -}}
{{- end -}}

{{/* How a probe asks: a dict with root and path. Without metrics there is no HTTP. */}}
{{- define "larder.asks" -}}
{{- if .root.Values.metrics.enabled -}}
httpGet:
  path: {{ .path }}
  port: metrics
{{- else -}}
tcpSocket:
  port: memcache
{{- end -}}
{{- end -}}

{{/* A term of affinity to pods of this release: a dict with root. */}}
{{- define "larder.podTerm" -}}
topologyKey: kubernetes.io/hostname
labelSelector:
  matchLabels:
    {{- include "larder.selectorLabels" .root | nindent 4 }}
{{- end -}}

{{/* Affinity to or from pods of this release: a dict with root and preset. */}}
{{- define "larder.podPreset" -}}
{{- if eq .preset "hard" -}}
requiredDuringSchedulingIgnoredDuringExecution:
  - {{ include "larder.podTerm" . | indent 4 | trim }}
{{- else -}}
preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 1
    podAffinityTerm:
      {{- include "larder.podTerm" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{- define "larder.affinity" -}}
{{- if .Values.affinity -}}
{{- tpl (toYaml .Values.affinity) . -}}
{{- else -}}
{{- with .Values.podAffinityPreset }}
podAffinity:
  {{- include "larder.podPreset" (dict "root" $ "preset" .) | nindent 2 }}
{{- end }}
{{- with .Values.podAntiAffinityPreset }}
podAntiAffinity:
  {{- include "larder.podPreset" (dict "root" $ "preset" .) | nindent 2 }}
{{- end }}
{{- with .Values.nodeAffinityPreset }}
{{- if .type }}
nodeAffinity:
  {{- if eq .type "hard" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: {{ .key | quote }}, operator: In, values: {{ toJson .values }}}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      preference:
        matchExpressions:
          - {key: {{ .key | quote }}, operator: In, values: {{ toJson .values }}}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The size of an emptyDir for the SSD's file, a tenth larger, in MiB: Larder's g is 2^30. */}}
{{- define "larder.emptyDirSize" -}}
{{- $size := .Values.ssd.size | toString | lower -}}
{{- $number := regexFind "^[0-9]+" $size | int64 -}}
{{- $unit := regexReplaceAll "^[0-9]+" $size "" -}}
{{- $mebibytes := get (dict "m" 1 "g" 1024 "t" 1048576) $unit -}}
{{- if not (and $number $mebibytes) -}}
{{- fail (printf "ssd.size: %q is no number of m, g or t" .Values.ssd.size) -}}
{{- end -}}
{{- printf "%dMi" (div (mul $number $mebibytes 11) 10) -}}
{{- end -}}
