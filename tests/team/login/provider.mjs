// A real identity provider for a test: PKCE, registration of clients, resource indicators (RFC 8707), access tokens as JWTs.
// provider.mjs PORT. Whoever comes is logged in as `anna` and consents to everything; nothing else is simplified.
import { generateKeyPairSync } from "node:crypto";

import Provider from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const scopes = "notes:read notes:write notes:admin";

function key(kid, type, options, alg) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

const provider = new Provider(issuer, {
  jwks: { keys: [key("rsa", "rsa", { modulusLength: 2048 }, "RS256"), key("ec", "ec", { namedCurve: "P-256" }, "ES256")] },
  cookies: { keys: ["a secret of this test"] },
  scopes: ["openid", "offline_access", ...scopes.split(" ")],
  claims: { openid: ["sub"] },
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_, token) => ({ email: `${token.accountId}@example.org`, groups: ["staff"] }),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: scopes,
        audience: resource,
        accessTokenTTL: 900,
        accessTokenFormat: "jwt",
        // The vault decides which key signs, so that both are tried.
        jwt: { sign: { alg: resource.includes("ec") ? "ES256" : "RS256" } },
      }),
    },
  },
});

// A client registers with the scope that it needs first. It may ask for more later.
provider.use(async (context, next) => {
  if (context.method === "POST" && context.path === "/reg") {
    const parts = [];
    for await (const part of context.req) parts.push(part);
    const { scope, ...metadata } = JSON.parse(Buffer.concat(parts).toString());
    context.req.body = metadata;
  }
  return next();
});

provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) return next();
  const { prompt, params, session } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === "login") {
    const result = { login: { accountId: "anna" } };
    await provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: false });
  } else {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(`openid offline_access ${params.scope}`);
    grant.addResourceScope(params.resource, params.scope);
    const result = { consent: { grantId: await grant.save() } };
    await provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: true });
  }
  context.respond = false;
});

provider.on("server_error", (_, error) => console.error(error));
provider.listen(port, "127.0.0.1", () => console.log(`issuer ${issuer}`));
