{{/* Labels of every object. */}}
{{- define "tephra.labels" -}}
app.kubernetes.io/name: tephra
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.custom.common_labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Whether a controller runs by the value of --controllers, the rule of the program: (dict "root" . "name" N); empty = no. */}}
{{- define "tephra.controls" -}}
{{- $given := .root.Values.custom.controller_enabled_controllers | default "*" -}}
{{- $words := list -}}
{{- range splitList "," $given -}}{{- $words = append $words (trim .) -}}{{- end -}}
{{- if or (has .name $words) (has (printf "+%s" .name) $words) -}}yes
{{- else if and (has "*" $words) (not (has (printf "-%s" .name) $words)) -}}yes
{{- end -}}
{{- end }}

{{/* A value of one component, or the one of both: (dict "root" . "component" "scheduler" "of" "affinity"). */}}
{{- define "tephra.own" -}}
{{- $custom := .root.Values.custom -}}
{{- $own := index $custom (printf "%s_%s" .component .of) -}}
{{- $shared := index $custom (printf "default_%s" (trimPrefix "main_" .of)) -}}
{{- with $own | default $shared }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* Rule for the lease of one component. */}}
{{- define "tephra.lease" -}}
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  # A name cannot limit what is created.
  verbs: ["create"]
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  resourceNames: [{{ . | quote }}]
  verbs: ["get", "update"]
{{- end }}

{{/*
All of a component but its rights and its configuration: service account, deployment, metrics service, budget, network
policy. (dict "root" . "component" "scheduler" "name" "tephra-scheduler" "args" LIST "conf" NAME-OF-CONFIGMAP-OR-"")
*/}}
{{- define "tephra.component" -}}
{{- $custom := .root.Values.custom -}}
{{- $basic := .root.Values.basic -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $component := .component -}}
{{- $replicas := int (index $custom (printf "%s_replicas" $component)) -}}
{{- if and (gt $replicas 1) (not $custom.leader_elect_enable) -}}
{{- fail (printf "custom.%s_replicas is %d: more than one needs custom.leader_elect_enable" $component $replicas) -}}
{{- end -}}
{{- $port := ternary 8080 8081 (eq $component "scheduler") -}}
{{- $metrics := index $custom (printf "%s_metrics_enable" $component) -}}
{{- $tag := index $basic (printf "%s_image_tag_version" $component) | default $basic.image_tag_version | default .root.Chart.AppVersion -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "tephra.labels" .root | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $namespace }}
  labels:
    app: {{ .name }}
    {{- include "tephra.labels" .root | nindent 4 }}
    {{- with index $custom (printf "%s_labels" $component) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  replicas: {{ $replicas }}
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        {{- include "tephra.labels" .root | nindent 8 }}
        {{- with index $custom (printf "%s_podLabels" $component) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      {{- with $custom.priority_class_name }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $basic.image_pull_secret }}
      imagePullSecrets:
        - name: {{ . }}
      {{- end }}
      {{- with include "tephra.own" (dict "root" .root "component" $component "of" "tolerations") }}
      tolerations:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with include "tephra.own" (dict "root" .root "component" $component "of" "ns") }}
      nodeSelector:
        {{- . | nindent 8 }}
      {{- end }}
      affinity:
        {{- with include "tephra.own" (dict "root" .root "component" $component "of" "affinity") }}
        {{- . | nindent 8 }}
        {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 1
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    app: {{ .name }}
        {{- end }}
      {{- with include "tephra.own" (dict "root" .root "component" $component "of" "sc") }}
      securityContext:
        {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ $component }}
          image: "{{ $basic.image_registry }}/{{ index $basic (printf "%s_image_name" $component) }}:{{ $tag }}"
          imagePullPolicy: {{ $basic.image_pull_policy }}
          args:
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
            - "--healthz-address=:11251"
            - "--enable-metrics={{ $metrics }}"
            {{- if $metrics }}
            - "--listen-address=:{{ $port }}"
            {{- end }}
            - "--leader-elect={{ $custom.leader_elect_enable }}"
            {{- if $custom.leader_elect_enable }}
            - "--leader-elect-resource-namespace={{ $namespace }}"
            - "--leader-elect-resource-name={{ index $custom (printf "%s_lease_name" $component) }}"
            {{- end }}
            {{- with $custom.scheduler_name }}
            - "--scheduler-name={{ . }}"
            {{- end }}
            - "-v={{ index $custom (printf "%s_log_level" $component) }}"
            {{- range index $custom (printf "%s_extra_args" $component) }}
            - {{ . | quote }}
            {{- end }}
          {{- with index $custom (printf "%s_env" $component) }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: health, containerPort: 11251}
            {{- if $metrics }}
            - {name: metrics, containerPort: {{ $port }}}
            {{- end }}
          livenessProbe:
            httpGet: {path: /livez, port: health}
            periodSeconds: 10
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 5
          {{- with index $custom (printf "%s_resources" $component) }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with include "tephra.own" (dict "root" .root "component" $component "of" "main_csc") }}
          securityContext:
            {{- . | nindent 12 }}
          {{- end }}
          {{- if .conf }}
          volumeMounts:
            - {name: configuration, mountPath: /etc/tephra, readOnly: true}
          {{- end }}
      {{- if .conf }}
      volumes:
        - name: configuration
          configMap: {name: {{ .conf }}}
      {{- end }}
{{- if $metrics }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-service
  namespace: {{ $namespace }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/path: /metrics
    prometheus.io/port: {{ $port | quote }}
  labels:
    app: {{ .name }}
    {{- include "tephra.labels" .root | nindent 4 }}
spec:
  type: ClusterIP
  {{- with .root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with .root.Values.service.ipFamilies }}
  ipFamilies:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    app: {{ .name }}
  ports:
    - {name: metrics, port: {{ $port }}, targetPort: metrics, protocol: TCP}
{{- end }}
{{- if $custom.pdb_enable }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "tephra.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ .name }}
{{- end }}
{{- if $custom.network_policy_enable }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "tephra.labels" .root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      app: {{ .name }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - {port: health, protocol: TCP}
    {{- if $metrics }}
    - ports:
        - {port: metrics, protocol: TCP}
      {{- with $custom.network_policy_metrics_from }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
  egress:
    - ports:
        - {port: 53, protocol: UDP}
        - {port: 53, protocol: TCP}
        {{- range $custom.network_policy_api_server_ports }}
        - {port: {{ . }}, protocol: TCP}
        {{- end }}
    {{- with $custom.network_policy_egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{/* Who has the rights: (dict "root" . "name" N "account" A). */}}
{{- define "tephra.bindings" -}}
{{- range $kind := .kinds }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $.name }}
  {{- if eq $kind "Role" }}
  namespace: {{ $.root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "tephra.labels" $.root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $.account }}
    namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end }}
