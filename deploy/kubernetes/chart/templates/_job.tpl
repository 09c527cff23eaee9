{{- /* Values that several manifests need. */ -}}

{{- define "muster.service" -}}
{{ .Values.service | default .Release.Name }}
{{- end }}

{{- define "muster.labels" -}}
app.kubernetes.io/name: muster, muster/job: {{ .Release.Name }}
{{- end }}

{{- define "muster.queue" -}}
{{- with .Values.queue }}, kueue.x-k8s.io/queue-name: {{ . | quote }}{{ end -}}
{{- end }}

{{- define "muster.clusterTasks" -}}
{{- $tasks := list -}}
{{- $counts := .Values.tasks -}}
{{- range list "chief" "ps" "worker" "evaluator" -}}
{{- $count := get $counts . | int -}}
{{- if $count }}{{ $tasks = append $tasks (printf "%s=%d" . $count) }}{{ end -}}
{{- end -}}
{{ join "," $tasks }}
{{- end }}

{{- define "muster.podCount" -}}
{{ add (int .Values.tasks.chief) (int .Values.tasks.ps) (int .Values.tasks.worker) (int .Values.tasks.evaluator) }}
{{- end }}

{{- /* "true" if the run folder is a URL. */ -}}
{{- define "muster.runIsUrl" -}}
{{- if or (hasPrefix "s3://" .Values.runDir) (hasPrefix "gs://" .Values.runDir) }}true{{ end -}}
{{- end }}

{{- define "muster.runFolder" -}}
{{- if include "muster.runIsUrl" . -}}
{{ .Values.runDir }}
{{- else if hasPrefix "/" .Values.runDir -}}
{{ clean .Values.runDir }}
{{- else -}}
{{ clean (printf "/run/muster/%s" .Values.runDir) }}
{{- end -}}
{{- end }}

{{- define "muster.runVolume" -}}
{{- if hasPrefix "/run/muster/" (include "muster.runFolder" .) -}}
/run/muster
{{- else -}}
{{ include "muster.runFolder" . }}
{{- end -}}
{{- end }}

{{- /* "true" if the job names a URL of an object store. */ -}}
{{- define "muster.hasUrl" -}}
{{- $texts := list .Values.job.text .Values.runDir -}}
{{- range .Values.settings }}{{ $texts = append $texts (toString .) }}{{ end -}}
{{- range .Values.environment }}{{ $texts = append $texts (toString .) }}{{ end -}}
{{- $text := join "\n" $texts -}}
{{- if or (contains "s3://" $text) (contains "gs://" $text) }}true{{ end -}}
{{- end }}

{{- /* The name of the container of a role: Kubeflow finds its trainer by it. */ -}}
{{- define "muster.container" -}}
{{- $trainer := ternary "worker" "chief" (gt (int .root.Values.tasks.worker) 0) -}}
{{- if and (eq .root.Values.workload "trainjob") (eq .role $trainer) }}node{{ else }}muster{{ end -}}
{{- end }}

{{- define "muster.environment" -}}
{{- $values := .root.Values -}}
{{- $run := include "muster.runFolder" .root -}}
{{- $variables := dict
  "MUSTER_CLUSTER_RESOLVER" "kubernetes"
  "MUSTER_CLUSTER_TASKS" (include "muster.clusterTasks" .root)
  "MUSTER_PORT_BASE" $values.portBase
  "MUSTER_RUN_DIR" $run
  "MUSTER_STATUS_PORT" $values.statusPort
  "MUSTER_STATUS_HOST" "0.0.0.0"
  "MUSTER_STATUS_TOKEN_FILE" "/etc/muster/status/token"
  "MUSTER_STATUS_JOB" .root.Release.Name
  "MUSTER_GRACE_PERIOD" (printf "%ds" (int $values.graceSeconds))
  "MUSTER_SERVER_RETURN_TIMEOUT" "10m" -}}
{{- if $values.tls -}}
{{- $_ := set $variables "MUSTER_TLS_DIR" "/etc/muster/tls" -}}
{{- else -}}
{{- $_ := set $variables "MUSTER_INSECURE" "true" -}}
{{- end -}}
{{- if $values.dataClaim -}}
{{- $_ := set $variables "MUSTER_DATA_ROOT" (printf "/data,%s" $run) -}}
{{- end -}}
{{- range $name, $value := $values.environment }}{{ $_ := set $variables $name $value }}{{ end -}}
{{- range $name, $value := $variables }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- if not (hasKey $variables "MUSTER_THREADS") }}
- name: MUSTER_THREADS
  valueFrom:
    resourceFieldRef: {containerName: {{ include "muster.container" . }}, resource: limits.cpu}
{{- end }}
{{- end }}

{{- /* The spec of a role's Job. */ -}}
{{- define "muster.jobSpec" -}}
{{- $values := .root.Values -}}
{{- $name := .root.Release.Name -}}
{{- $container := include "muster.container" . -}}
{{- $namesGroup := ne $values.workload "trainjob" -}}
{{- $hasTls := and $values.tls (ne .role "evaluator") -}}
completionMode: Indexed
completions: {{ .count }}
parallelism: {{ .count }}
backoffLimit: {{ $values.restartCountMax | int64 }}
# Exit codes 1 and 2 would recur in a new pod. 138 requests a new pod, and 143 is that of
# a pod that was stopped.
podFailurePolicy:
  rules:
  - action: FailJob
    onExitCodes: {containerName: {{ $container }}, operator: In, values: [1, 2]}
  - action: Ignore
    onExitCodes: {containerName: {{ $container }}, operator: In, values: [138, 143]}
  - action: Ignore
    onPodConditions: [{type: DisruptionTarget, status: "True"}]
template:
  metadata:
    labels: { {{- include "muster.labels" .root }}, muster/role: {{ .role }}
      {{- if and $namesGroup (eq $values.gang "coscheduling") }}, scheduling.x-k8s.io/pod-group: {{ $name }}{{ end -}} }
    {{- if and $namesGroup (eq $values.gang "volcano") }}
    annotations: {scheduling.k8s.io/group-name: {{ $name }}}
    {{- end }}
  spec:
    subdomain: {{ include "muster.service" .root }}
    restartPolicy: Never
    {{- if and $values.priorityClass (or $namesGroup (eq $container "node")) }}
    priorityClassName: {{ $values.priorityClass | quote }}
    {{- end }}
    {{- if $values.gang }}
    schedulerName: {{ ternary "volcano" "scheduler-plugins-scheduler" (eq $values.gang "volcano") }}
    {{- end }}
    {{- with $values.topologySpread }}
    topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {{ . | quote }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {muster/job: {{ $name }}, muster/role: {{ $.role }}}
    {{- end }}
    terminationGracePeriodSeconds: {{ add (int $values.graceSeconds) 10 }}
    automountServiceAccountToken: false
    enableServiceLinks: false
    securityContext:
      runAsNonRoot: true
      runAsUser: 65532
      runAsGroup: 65532
      fsGroup: 65532
      seccompProfile: {type: RuntimeDefault}
    containers:
    - name: {{ $container }}
      image: {{ required "image is missing" $values.image | quote }}
      {{- if $values.program }}
      command: [{{ first $values.program | quote }}]
      {{- with rest $values.program }}
      args:
      {{- range . }}
      - {{ . | quote }}
      {{- end }}
      {{- end }}
      {{- else }}
      args:
      - "--task"
      - {{ printf "--job=/etc/muster/job/%s" (required "job.file is missing" $values.job.file) | quote }}
      {{- range $setting, $value := $values.settings }}
      - "--set"
      - {{ printf "%s=%s" $setting (toString $value) | quote }}
      {{- end }}
      {{- end }}
      env: {{- include "muster.environment" . | nindent 6 }}
      {{- if include "muster.hasUrl" .root }}
      envFrom:
      - secretRef: {name: {{ $name }}-storage}
      {{- end }}
      ports:
      - {name: tasks, containerPort: {{ $values.portBase }}}
      - {name: status, containerPort: {{ $values.statusPort }}}
      livenessProbe:
        httpGet: {path: /livez, port: status}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: status}
        periodSeconds: 5
      resources:
        requests: {cpu: {{ $values.cpus | quote }}, memory: {{ $values.memory | quote }}}
        limits:
          cpu: {{ $values.cpus | quote }}
          memory: {{ $values.memory | quote }}
          {{- if and (eq .role "worker") (gt (int $values.workerGpus) 0) }}
          nvidia.com/gpu: {{ $values.workerGpus }}
          {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
      {{- if not (include "muster.runIsUrl" .root) }}
      - {name: run, mountPath: {{ include "muster.runVolume" .root | quote }}}
      {{- end }}
      - {name: status, mountPath: /etc/muster/status, readOnly: true}
      - {name: tmp, mountPath: /tmp}
      {{- if not $values.program }}
      - {name: job, mountPath: /etc/muster/job, readOnly: true}
      {{- end }}
      {{- if $hasTls }}
      - {name: tls, mountPath: /etc/muster/tls, readOnly: true}
      {{- end }}
      {{- if $values.dataClaim }}
      - {name: data, mountPath: /data, readOnly: true}
      {{- end }}
    volumes:
    {{- if not (include "muster.runIsUrl" .root) }}
    - name: run
      persistentVolumeClaim: {claimName: {{ $name }}-run}
    {{- end }}
    - name: status
      secret: {secretName: {{ $name }}-status, defaultMode: 0440}
    - name: tmp
      emptyDir: {}
    {{- if not $values.program }}
    - name: job
      configMap: {name: {{ $name }}-job}
    {{- end }}
    {{- if $hasTls }}
    - name: tls
      secret:
        secretName: {{ $name }}-tls
        defaultMode: 0440
        items:
        - {key: ca.pem, path: ca.pem}
        {{- range $index := until (int .count) }}
        {{- range list "pem" "key" }}
        {{- $file := printf "%s-%d.%s" $.role $index . }}
        - {key: {{ $file }}, path: {{ $file }}}
        {{- end }}
        {{- end }}
    {{- end }}
    {{- with $values.dataClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ . | quote }}, readOnly: true}
    {{- end }}
{{- end }}

{{- /* The spec of a JobSet with all roles. */ -}}
{{- define "muster.jobSetSpec" -}}
{{- $last := list (ternary "chief" "worker" (gt (int .Values.tasks.chief) 0)) -}}
{{- if gt (int .Values.tasks.evaluator) 0 }}{{ $last = append $last "evaluator" }}{{ end -}}
network: {enableDNSHostnames: false}
successPolicy: {operator: All, targetReplicatedJobs: [{{ join ", " $last }}]}
failurePolicy:
  maxRestarts: {{ .Values.restartCountMax | int64 }}
  rules:
  - {name: wouldFailAgain, action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}
{{- if not (kindIs "invalid" .Values.ttlSeconds) }}
ttlSecondsAfterFinished: {{ .Values.ttlSeconds | int64 }}
{{- end }}
replicatedJobs:
{{- range $role := list "chief" "ps" "worker" "evaluator" }}
{{- $count := get $.Values.tasks $role | int }}
{{- if $count }}
{{- $pods := dict "root" $ "role" $role "count" $count }}
- name: {{ $role }}
  replicas: 1
  template:
    metadata:
      labels: { {{- include "muster.labels" $ }}, muster/role: {{ $role }}
        {{- if eq (include "muster.container" $pods) "node" }}, trainer.kubeflow.org/trainjob-ancestor-step: trainer{{ end -}} }
    spec: {{- include "muster.jobSpec" $pods | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}
