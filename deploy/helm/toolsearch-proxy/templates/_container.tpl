{{- define "toolsearch-proxy.container" -}}
name: toolsearch-proxy
image: {{ include "toolsearch-proxy.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: ["serve", "--config", "/etc/toolsearch-proxy/config.toml"]
env:
  {{- /* The image's own variables would win over the file. */}}
  - name: TOOLSEARCH_LISTEN
    value: ""
  - name: TOOLSEARCH_ADMIN_LISTEN
    value: ""
  - name: TOOLSEARCH_LOG_FORMAT
    value: ""
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  {{- if not .Values.sidecar.enabled }}
  - name: mcp
    containerPort: 8080
  {{- end }}
  - name: metrics
    containerPort: 9090
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  failureThreshold: 2
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: settings
    mountPath: /etc/toolsearch-proxy/config.toml
    subPath: config.toml
    readOnly: true
  {{- if or .Values.upstreamCA.configMap .Values.upstreamCA.secret }}
  - name: ca
    mountPath: /etc/toolsearch-proxy/ca
    readOnly: true
  {{- end }}
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
