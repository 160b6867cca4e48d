// The authentication of gs_server.mjs: tokens for the assertions of a service account (checked by npm's jose), for a user's
// refresh token, and from a machine's metadata server.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const kAudience = "https://oauth2.googleapis.com/token";
const kEmail = "tester@project.iam.gserviceaccount.com";
const kKeyId = "key-1";
const kUser = { client_id: "client-1", client_secret: "client-hunter2", refresh_token: "1//hunter2+x" };
const kWrongTime =
  "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. " +
  "Check your iat and exp values in the JWT claim.";

const tokens = new Map(); // when they expire
let given = 0;
let pair; // made when it is first asked for: that takes a while

function keys() {
  pair ??= generateKeyPairSync("rsa", { modulusLength: 2048 });
  return pair;
}

// The credentials file of a service account, as Google's console creates it.
export function serviceAccount(address) {
  return {
    type: "service_account", project_id: "project", private_key_id: kKeyId, client_email: kEmail, client_id: "1",
    private_key: keys().privateKey.export({ type: "pkcs8", format: "pem" }), token_uri: `${address}/token`,
  };
}

export function authorizedUser(address) {
  return { type: "authorized_user", ...kUser, token_uri: `${address}/token` };
}

export const tokenCount = () => given;

export function revokeTokens() {
  tokens.clear();
  return {};
}

export function isAuthorized(header) {
  const expires = tokens.get(/^Bearer (.+)$/.exec(header ?? "")?.[1]);
  return expires !== undefined && expires > Date.now();
}

export function newToken(options) {
  const token = `ya29.hunter2-${randomBytes(12).toString("hex")}`;
  tokens.set(token, Date.now() + options.tokenSeconds * 1000);
  ++given;
  return { access_token: token, expires_in: options.tokenSeconds, token_type: "Bearer" };
}

async function checkAssertion(assertion) {
  const modules = join(dirname(fileURLToPath(import.meta.url)), "../build/npm/node_modules");
  const jose = await import(pathToFileURL(createRequire(join(modules, "index.js")).resolve("jose")).href);
  const { payload, protectedHeader } = await jose.jwtVerify(assertion, keys().publicKey, {
    algorithms: ["RS256"], audience: kAudience, issuer: kEmail, typ: "JWT", requiredClaims: ["iat", "exp", "scope"],
  });
  if (protectedHeader.kid !== kKeyId) throw new Error("unknown kid");
  if (payload.exp - payload.iat > 3600 || payload.iat > Date.now() / 1000 + 300) throw new Error("iat and exp");
  if (payload.scope !== "https://www.googleapis.com/auth/cloud-platform") throw new Error("unknown scope");
}

export async function answerTokenRequest(res, reply, body, options) {
  const form = new URLSearchParams(body);
  const refuse = (error, error_description) => reply(res, 400, { error, error_description });
  if (form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer") {
    try {
      await checkAssertion(form.get("assertion") ?? "");
    } catch (error) {
      if (error.code === "MODULE_NOT_FOUND") return reply(res, 501, { error: "no_jose" });
      const time = error.code === "ERR_JWT_EXPIRED" || /iat/.test(error.message);
      return refuse("invalid_grant", time ? kWrongTime : `Invalid JWT Signature. (${error.message})`);
    }
  } else if (form.get("grant_type") === "refresh_token") {
    if (form.get("client_id") !== kUser.client_id || form.get("client_secret") !== kUser.client_secret) {
      return reply(res, 401, { error: "invalid_client", error_description: "Unauthorized" });
    }
    if (form.get("refresh_token") !== kUser.refresh_token) {
      return refuse("invalid_grant", "Token has been expired or revoked.");
    }
  } else {
    return refuse("unsupported_grant_type", "Invalid grant_type");
  }
  reply(res, 200, newToken(options));
}

export function metadataToken(req, res, reply, path, options) {
  const flavor = { "metadata-flavor": "Google" };
  if (req.headers["metadata-flavor"] !== "Google") return reply(res, 403, {}, flavor);
  const known = path === "/computeMetadata/v1/instance/service-accounts/default/token";
  reply(res, known ? 200 : 404, known ? newToken(options) : {}, flavor);
}
