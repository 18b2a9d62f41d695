// An OpenID Connect provider (oidc-provider, certified) for scripts/sign-in/oidc-flow, scripts/sign-in/exchange-flow and scripts/sign-in/sign-in-flow. Prints its URL when it
// listens. It issues assertions (ID-JAG) about the people who signed in, to the client `gateway`.
// usage: node oidc_issuer.mjs PACKAGES_FOLDER PORT RESOURCE TOKEN_SECONDS
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , packages, port, resource, seconds] = process.argv;
const require = createRequire(pathToFileURL(`${packages}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: Provider, errors } = await load('oidc-provider');
const jose = await load('jose');

const issuer = `http://127.0.0.1:${port}`;
const scopes = 'tools:call other';
const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const idJag = 'urn:ietf:params:oauth:token-type:id-jag';
const keys = await jose.generateKeyPair('RS256', { extractable: true });
const provider = new Provider(issuer, {
    clients: [
        {
            client_id: 'editor', application_type: 'native', token_endpoint_auth_method: 'none',
            redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'],
        },
        {
            client_id: 'pages', application_type: 'native', token_endpoint_auth_method: 'none',
            redirect_uris: ['http://127.0.0.1/sign-in/callback'], grant_types: ['authorization_code'],
        },
        {
            client_id: 'robot', client_secret: 'a-secret-of-the-robot-only-here', redirect_uris: [], response_types: [],
            grant_types: ['client_credentials'],
        },
        {
            client_id: 'gateway', client_secret: 'a-secret-of-the-gateway-only-here', redirect_uris: [], response_types: [],
            grant_types: [exchange],
        },
    ],
    jwks: { keys: [{ ...(await jose.exportJWK(keys.privateKey)), kid: 'one', use: 'sig', alg: 'RS256' }] },
    // Clients that register themselves name them.
    scopes: ['openid', 'offline_access', ...scopes.split(' ')],
    issueRefreshToken: async () => true,
    pkce: { required: () => true },
    features: {
        registration: { enabled: true },
        clientCredentials: { enabled: true },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => resource,
            useGrantedResource: () => true,
            getResourceServerInfo: (_, wanted) => ({
                scope: scopes, audience: wanted, accessTokenTTL: Number(seconds), accessTokenFormat: 'jwt',
                jwt: { sign: { alg: 'RS256' } },
            }),
        },
    },
});
const ownKeys = jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256' }] });
provider.registerGrantType(exchange, async (ctx) => {
    const { subject_token, requested_token_type, audience, resource: wanted, scope } = ctx.oidc.params;
    if (requested_token_type !== idJag) throw new errors.InvalidRequest('only assertions are issued');
    const verified = await jose.jwtVerify(subject_token, ownKeys, { issuer, audience: resource }).catch((error) => {
        throw new errors.InvalidGrant(`not accepted: ${error.code}`);
    });
    // The name by which the authorization server of the tool server knows the gateway.
    const claims = { client_id: 'gateway-at-notes', resource: wanted, scope };
    const assertion = new jose.SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'oauth-id-jag+jwt', kid: 'one' })
        .setIssuer(issuer).setSubject(verified.payload.sub).setAudience(audience).setJti(crypto.randomUUID()).setIssuedAt().setExpirationTime('60s');
    ctx.body = { access_token: await assertion.sign(keys.privateKey), issued_token_type: idJag, token_type: 'N_A', expires_in: 60 };
}, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope']);
provider.listen(Number(port), '127.0.0.1', () => console.log(`issuer at ${issuer}`));
