#include "job/format/pod_fields.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/suggest.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::Node;

// The core/v1 types of a pod template, up to Kubernetes 1.36, one `Type: field=type …` per line. A
// type is s (string), i (integer), b (boolean), q (quantity), x (integer or string), o (anything),
// [type (a list), {type (a map), or the name of another type in this table.
constexpr char kTable[] =
    R"(AWSElasticBlockStoreVolumeSource: fsType=s partition=i readOnly=b volumeID=s
Affinity: nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
AppArmorProfile: localhostProfile=s type=s
AzureDiskVolumeSource: cachingMode=s diskName=s diskURI=s fsType=s kind=s readOnly=b
AzureFileVolumeSource: readOnly=b secretName=s shareName=s
CSIVolumeSource: driver=s fsType=s nodePublishSecretRef=LocalObjectReference readOnly=b
  volumeAttributes={s
Capabilities: add=[s drop=[s
CephFSVolumeSource: monitors=[s path=s readOnly=b secretFile=s secretRef=LocalObjectReference
  user=s
CinderVolumeSource: fsType=s readOnly=b secretRef=LocalObjectReference volumeID=s
ClusterTrustBundleProjection: labelSelector=LabelSelector name=s optional=b path=s signerName=s
  user=i
ConfigMapEnvSource: name=s optional=b
ConfigMapKeySelector: key=s name=s optional=b
ConfigMapProjection: items=[KeyToPath name=s optional=b
ConfigMapVolumeSource: defaultMode=i defaultUser=i items=[KeyToPath name=s optional=b
Container: args=[s command=[s env=[EnvVar envFrom=[EnvFromSource image=s imagePullPolicy=s
  lifecycle=Lifecycle livenessProbe=Probe name=s ports=[ContainerPort readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy resources=ResourceRequirements restartPolicy=s
  restartPolicyRules=[ContainerRestartRule securityContext=SecurityContext startupProbe=Probe
  stdin=b stdinOnce=b terminationMessagePath=s terminationMessagePolicy=s tty=b
  volumeDevices=[VolumeDevice volumeMounts=[VolumeMount workingDir=s
ContainerPort: containerPort=i hostIP=s hostPort=i name=s protocol=s
ContainerResizePolicy: resourceName=s restartPolicy=s
ContainerRestartRule: action=s exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=s values=[i
DownwardAPIProjection: items=[DownwardAPIVolumeFile
DownwardAPIVolumeFile: fieldRef=ObjectFieldSelector mode=i path=s
  resourceFieldRef=ResourceFieldSelector user=i
DownwardAPIVolumeSource: defaultMode=i defaultUser=i items=[DownwardAPIVolumeFile
EmptyDirVolumeSource: medium=s mode=i sizeLimit=q
EnvFromSource: configMapRef=ConfigMapEnvSource prefix=s secretRef=SecretEnvSource
EnvVar: name=s value=s valueFrom=EnvVarSource
EnvVarSource: configMapKeyRef=ConfigMapKeySelector fieldRef=ObjectFieldSelector
  fileKeyRef=FileKeySelector resourceFieldRef=ResourceFieldSelector
  secretKeyRef=SecretKeySelector
EphemeralContainer: args=[s command=[s env=[EnvVar envFrom=[EnvFromSource image=s
  imagePullPolicy=s lifecycle=Lifecycle livenessProbe=Probe name=s ports=[ContainerPort
  readinessProbe=Probe resizePolicy=[ContainerResizePolicy resources=ResourceRequirements
  restartPolicy=s restartPolicyRules=[ContainerRestartRule securityContext=SecurityContext
  startupProbe=Probe stdin=b stdinOnce=b targetContainerName=s terminationMessagePath=s
  terminationMessagePolicy=s tty=b volumeDevices=[VolumeDevice volumeMounts=[VolumeMount
  workingDir=s
EphemeralVolumeSource: volumeClaimTemplate=PersistentVolumeClaimTemplate
EvictionResponder: name=s priority=i
ExecAction: command=[s
FCVolumeSource: fsType=s lun=i readOnly=b targetWWNs=[s wwids=[s
FileKeySelector: key=s optional=b path=s volumeName=s
FlexVolumeSource: driver=s fsType=s options={s readOnly=b secretRef=LocalObjectReference
FlockerVolumeSource: datasetName=s datasetUUID=s
GCEPersistentDiskVolumeSource: fsType=s partition=i pdName=s readOnly=b
GRPCAction: mode=s port=i service=s
GitRepoVolumeSource: directory=s repository=s revision=s
GlusterfsVolumeSource: endpoints=s path=s readOnly=b
HTTPGetAction: host=s httpHeaders=[HTTPHeader path=s port=x protocol=s scheme=s
HTTPHeader: name=s value=s
HostAlias: hostnames=[s ip=s
HostPathVolumeSource: path=s type=s
ISCSIVolumeSource: chapAuthDiscovery=b chapAuthSession=b fsType=s initiatorName=s iqn=s
  iscsiInterface=s lun=i portals=[s readOnly=b secretRef=LocalObjectReference targetPortal=s
ImageVolumeSource: pullPolicy=s reference=s
KeyToPath: key=s mode=i path=s user=i
LabelSelector: matchExpressions=[LabelSelectorRequirement matchLabels={s
LabelSelectorRequirement: key=s operator=s values=[s
Lifecycle: postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=s
LifecycleHandler: exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction
  tcpSocket=TCPSocketAction
LocalObjectReference: name=s
NFSVolumeSource: path=s readOnly=b server=s
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
NodeSelector: nodeSelectorTerms=[NodeSelectorTerm
NodeSelectorRequirement: key=s operator=s values=[s
NodeSelectorTerm: matchExpressions=[NodeSelectorRequirement matchFields=[NodeSelectorRequirement
ObjectFieldSelector: apiVersion=s fieldPath=s
ObjectMeta: annotations={s creationTimestamp=s deletionGracePeriodSeconds=i deletionTimestamp=s
  finalizers=[s generateName=s generation=i labels={s managedFields=[o name=s namespace=s
  ownerReferences=[o resourceVersion=s selfLink=s uid=s
PersistentVolumeClaimSpec: accessModes=[s dataSource=TypedLocalObjectReference
  dataSourceRef=TypedObjectReference resources=VolumeResourceRequirements selector=LabelSelector
  storageClassName=s volumeAttributesClassName=s volumeMode=s volumeName=s
PersistentVolumeClaimTemplate: metadata=ObjectMeta spec=PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName=s readOnly=b
PhotonPersistentDiskVolumeSource: fsType=s pdID=s
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm
PodAffinityTerm: labelSelector=LabelSelector matchLabelKeys=[s mismatchLabelKeys=[s
  namespaceSelector=LabelSelector namespaces=[s topologyKey=s
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm
PodCertificateProjection: certificateChainPath=s credentialBundlePath=s keyPath=s keyType=s
  maxExpirationSeconds=i signerName=s user=i userAnnotations={s
PodDNSConfig: nameservers=[s options=[PodDNSConfigOption searches=[s
PodDNSConfigOption: name=s value=s
PodOS: name=s
PodReadinessGate: conditionType=s
PodResourceClaim: name=s resourceClaimName=s resourceClaimTemplateName=s
PodSchedulingGate: name=s
PodSchedulingGroup: podGroupName=s
PodSecurityContext: appArmorProfile=AppArmorProfile fsGroup=i fsGroupChangePolicy=s runAsGroup=i
  runAsNonRoot=b runAsUser=i seLinuxChangePolicy=s seLinuxOptions=SELinuxOptions
  seccompProfile=SeccompProfile supplementalGroups=[i supplementalGroupsPolicy=s sysctls=[Sysctl
  windowsOptions=WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds=i affinity=Affinity automountServiceAccountToken=b
  containers=[Container dnsConfig=PodDNSConfig dnsPolicy=s enableServiceLinks=b
  ephemeralContainers=[EphemeralContainer evictionResponders=[EvictionResponder
  hostAliases=[HostAlias hostIPC=b hostNetwork=b hostPID=b hostUsers=b hostname=s
  hostnameOverride=s imagePullSecrets=[LocalObjectReference initContainers=[Container nodeName=s
  nodeSelector={s os=PodOS overhead={q preemptionPolicy=s priority=i priorityClassName=s
  readinessGates=[PodReadinessGate resourceClaims=[PodResourceClaim
  resources=ResourceRequirements restartPolicy=s runtimeClassName=s schedulerName=s
  schedulingGates=[PodSchedulingGate schedulingGroup=PodSchedulingGroup
  securityContext=PodSecurityContext serviceAccount=s serviceAccountName=s setHostnameAsFQDN=b
  shareProcessNamespace=b subdomain=s terminationGracePeriodSeconds=i tolerations=[Toleration
  topologySpreadConstraints=[TopologySpreadConstraint volumes=[Volume
PodTemplateSpec: metadata=ObjectMeta spec=PodSpec
PortworxVolumeSource: fsType=s readOnly=b volumeID=s
PreferredSchedulingTerm: preference=NodeSelectorTerm weight=i
Probe: exec=ExecAction failureThreshold=i grpc=GRPCAction httpGet=HTTPGetAction
  initialDelaySeconds=i periodSeconds=i successThreshold=i tcpSocket=TCPSocketAction
  terminationGracePeriodSeconds=i timeoutSeconds=i
ProjectedVolumeSource: defaultMode=i defaultUser=i sources=[VolumeProjection
QuobyteVolumeSource: group=s readOnly=b registry=s tenant=s user=s volume=s
RBDVolumeSource: fsType=s image=s keyring=s monitors=[s pool=s readOnly=b
  secretRef=LocalObjectReference user=s
ResourceClaim: name=s request=s
ResourceFieldSelector: containerName=s divisor=q resource=s
ResourceRequirements: claims=[ResourceClaim limits={q requests={q
SELinuxOptions: level=s role=s type=s user=s
ScaleIOVolumeSource: fsType=s gateway=s protectionDomain=s readOnly=b
  secretRef=LocalObjectReference sslEnabled=b storageMode=s storagePool=s system=s volumeName=s
SeccompProfile: localhostProfile=s type=s
SecretEnvSource: name=s optional=b
SecretKeySelector: key=s name=s optional=b
SecretProjection: items=[KeyToPath name=s optional=b
SecretVolumeSource: defaultMode=i defaultUser=i items=[KeyToPath optional=b secretName=s
SecurityContext: allowPrivilegeEscalation=b appArmorProfile=AppArmorProfile
  capabilities=Capabilities privileged=b procMount=s readOnlyRootFilesystem=b runAsGroup=i
  runAsNonRoot=b runAsUser=i seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile
  windowsOptions=WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience=s expirationSeconds=i path=s user=i
SleepAction: seconds=i
StorageOSVolumeSource: fsType=s readOnly=b secretRef=LocalObjectReference volumeName=s
  volumeNamespace=s
Sysctl: name=s value=s
TCPSocketAction: host=s port=x
Toleration: effect=s key=s operator=s tolerationSeconds=i value=s
TopologySpreadConstraint: labelSelector=LabelSelector matchLabelKeys=[s maxSkew=i minDomains=i
  nodeAffinityPolicy=s nodeTaintsPolicy=s topologyKey=s whenUnsatisfiable=s
TypedLocalObjectReference: apiGroup=s kind=s name=s
TypedObjectReference: apiGroup=s kind=s name=s namespace=s
Volume: awsElasticBlockStore=AWSElasticBlockStoreVolumeSource azureDisk=AzureDiskVolumeSource
  azureFile=AzureFileVolumeSource cephfs=CephFSVolumeSource cinder=CinderVolumeSource
  configMap=ConfigMapVolumeSource csi=CSIVolumeSource downwardAPI=DownwardAPIVolumeSource
  emptyDir=EmptyDirVolumeSource ephemeral=EphemeralVolumeSource fc=FCVolumeSource
  flexVolume=FlexVolumeSource flocker=FlockerVolumeSource
  gcePersistentDisk=GCEPersistentDiskVolumeSource gitRepo=GitRepoVolumeSource
  glusterfs=GlusterfsVolumeSource hostPath=HostPathVolumeSource image=ImageVolumeSource
  iscsi=ISCSIVolumeSource name=s nfs=NFSVolumeSource
  persistentVolumeClaim=PersistentVolumeClaimVolumeSource
  photonPersistentDisk=PhotonPersistentDiskVolumeSource portworxVolume=PortworxVolumeSource
  projected=ProjectedVolumeSource quobyte=QuobyteVolumeSource rbd=RBDVolumeSource
  scaleIO=ScaleIOVolumeSource secret=SecretVolumeSource storageos=StorageOSVolumeSource
  vsphereVolume=VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath=s name=s
VolumeMount: bindMountOptions=[s mountPath=s mountPropagation=s name=s readOnly=b
  recursiveReadOnly=s subPath=s subPathExpr=s
VolumeProjection: clusterTrustBundle=ClusterTrustBundleProjection configMap=ConfigMapProjection
  downwardAPI=DownwardAPIProjection podCertificate=PodCertificateProjection
  secret=SecretProjection serviceAccountToken=ServiceAccountTokenProjection
VolumeResourceRequirements: limits={q requests={q
VsphereVirtualDiskVolumeSource: fsType=s storagePolicyID=s storagePolicyName=s volumePath=s
WeightedPodAffinityTerm: podAffinityTerm=PodAffinityTerm weight=i
WindowsSecurityContextOptions: gmsaCredentialSpec=s gmsaCredentialSpecName=s hostProcess=b
  runAsUserName=s
)";

using Fields = std::map<std::string, std::string, std::less<>>;
using Types = std::map<std::string, Fields, std::less<>>;

const Types& AllTypes() {
  static const Types& types = *[] {
    auto* read = new Types;
    Fields* fields = nullptr;
    for (absl::string_view word :
         absl::StrSplit(kTable, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      if (absl::EndsWith(word, ":")) {
        word.remove_suffix(1);
        fields = &(*read)[std::string(word)];
      } else {
        const std::pair<std::string, std::string> field = absl::StrSplit(word, '=');
        fields->insert(field);
      }
    }
    return read;
  }();
  return types;
}

std::vector<std::string> FieldNames(const Fields& fields) {
  std::vector<std::string> names;
  for (const auto& [name, what] : fields) names.push_back(name);
  return names;
}

bool IsText(const Node& node) {
  return node.kind == Node::Kind::kScalar &&
         (node.quoted || (!codec::AsBool(node) && !codec::AsNumber(node)));
}

class Checker {
 public:
  Checker(const std::string& owner, Diagnostics& diagnostics)
      : owner_(owner), diagnostics_(diagnostics) {}

  // Checks a value against the type `what` of the table. `name` is the field, for messages.
  void Check(const Node& node, absl::string_view what, absl::string_view name) {
    if (what == "o") return;
    const char kind = what.size() == 1 || what[0] == '[' || what[0] == '{' ? what[0] : 'T';
    if (!IsOfKind(node, kind)) return Report(node, kind, name);
    if (kind == '[') {
      for (const Node& item : node.items) Check(item, what.substr(1), name);
    } else if (kind == '{') {
      for (const auto& [key, value] : node.entries) {
        if (value.kind != Node::Kind::kNull) Check(value, what.substr(1), key.name);
      }
    } else if (kind == 'T') {
      CheckFields(node, AllTypes().find(what)->second);
    }
  }

  void CheckFields(const Node& node, const Fields& fields) {
    for (const auto& [key, value] : node.entries) {
      const auto field = fields.find(key.name);
      if (field == fields.end()) {
        if (diagnostics_.warned_enough()) continue;
        diagnostics_.Warn(key.mark,
                          absl::StrCat("unknown field ", codec::Quoted(key.name), " in ", owner_,
                                       base::DidYouMean(key.name, FieldNames(fields)),
                                       "; Kubernetes ignores it"));
      } else if (value.kind != Node::Kind::kNull) {  // Kubernetes treats null as absent
        Check(value, field->second, key.name);
      }
    }
  }

 private:
  static bool IsOfKind(const Node& node, char kind) {
    const bool scalar = node.kind == Node::Kind::kScalar;
    switch (kind) {
      case 's':
        return IsText(node);
      case 'i':
        return codec::AsInt(node).has_value();
      case 'b':
        return codec::AsBool(node).has_value();
      case 'q':
      case 'x':
        return scalar && !codec::AsBool(node);
      case '[':
        return node.kind == Node::Kind::kSequence;
      default:
        return node.kind == Node::Kind::kMap;
    }
  }

  void Report(const Node& node, char kind, absl::string_view name) {
    static const auto& kWords = *new std::map<char, const char*>{
        {'s', "text"},       {'i', "a whole number"},   {'b', "true or false"},
        {'q', "a quantity"}, {'x', "a number or text"}, {'[', "a list"}};
    const auto word = kWords.find(kind);
    const bool unquoted = kind == 's' && node.kind == Node::Kind::kScalar;
    diagnostics_.Add(node.mark,
                     absl::StrCat(codec::Quoted(name), " in ", owner_, " must be ",
                                  word == kWords.end() ? "a map" : word->second, ", not ",
                                  Describe(node), unquoted ? "; put it in quotes" : ""));
  }

  const std::string& owner_;
  Diagnostics& diagnostics_;
};

}  // namespace

void CheckPodFields(const Node& node, absl::string_view type, const std::string& owner,
                    Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::kMap) {
    if (node.kind == Node::Kind::kNull) return;
    diagnostics.Add(node.mark, absl::StrCat(owner, " must be a map, not ", Describe(node)));
    return;
  }
  Checker(owner, diagnostics).CheckFields(node, AllTypes().find(type)->second);
}

}  // namespace muster::job
