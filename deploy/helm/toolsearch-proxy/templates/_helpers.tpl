{{- /* A label's value has at most 63 characters and ends with a letter or a digit. */ -}}
{{- define "toolsearch-proxy.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | regexFind "^.*[A-Za-z0-9]" -}}
{{- end -}}

{{- define "toolsearch-proxy.fullname" -}}
{{- $name := include "toolsearch-proxy.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- /* A Service's name has at most 63 characters, no dots and no capitals, and a letter first; other names follow from it. */ -}}
{{- $name = default $full .Values.fullnameOverride | lower | replace "." "-" | replace "_" "-" -}}
{{- $name = ternary $name (printf "proxy-%s" $name) (regexMatch "^[a-z]" $name) -}}
{{- $name | trunc 52 | trimAll "-" -}}
{{- end -}}

{{- define "toolsearch-proxy.selector" -}}
app.kubernetes.io/name: {{ include "toolsearch-proxy.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "toolsearch-proxy.labels" -}}
{{ include "toolsearch-proxy.selector" . }}
app.kubernetes.io/part-of: toolsearch-proxy
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "toolsearch-proxy.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "toolsearch-proxy.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "toolsearch-proxy.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* A value as TOML. Numbers reach a template as floats, which TOML would not take for whole ones. */ -}}
{{- define "toolsearch-proxy.toml" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{- /* The settings file: what the chart decides, then what the values say. */ -}}
{{- define "toolsearch-proxy.settings" -}}
{{- $own := dict "drain-timeout" (printf "%ds" (int .Values.drainSeconds)) "drain-delay" (printf "%ds" (int .Values.drainDelaySeconds)) "admin-listen" "0.0.0.0:9090" -}}
{{- if .Values.sidecar.enabled -}}
{{- $_ := set $own "listen" "127.0.0.1:8080" -}}
{{- $_ := set $own "upstream" (printf "http://127.0.0.1:%d%s" (int .Values.sidecar.gateway.port) .Values.sidecar.upstreamPath) -}}
{{- /* The gateway passes on the host that clients dialled. */ -}}
{{- $_ := set $own "allowed-hosts" "*" -}}
{{- else -}}
{{- $_ := set $own "listen" "0.0.0.0:8080" -}}
{{- end -}}
{{- if or .Values.upstreamCA.configMap .Values.upstreamCA.secret -}}
{{- $_ := set $own "upstream-ca" (printf "/etc/toolsearch-proxy/ca/%s" .Values.upstreamCA.key) -}}
{{- end -}}
{{- $all := merge (deepCopy .Values.settings) $own -}}
{{- if not (get $all "upstream") -}}
{{- fail "settings.upstream is required: the URL of the MCP endpoint with the many tools" -}}
{{- end -}}
{{- range $key := keys $all | sortAlpha -}}
{{- $value := get $all $key -}}
{{- if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "toolsearch-proxy.toml" $value }}
{{- end -}}
{{- end -}}
{{- end -}}
