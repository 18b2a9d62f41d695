// An MCP server and its authorization server (oidc-provider, certified) for scripts/sign-in/exchange-flow. The authorization server exchanges
// tokens of another issuer (RFC 8693) and accepts assertions of it (ID-JAG). Prints a line when both listen.
// usage: node exchange_servers.mjs PACKAGES_FOLDER AUTHORIZATION_PORT SERVER_PORT TRUSTED_ISSUER GATEWAY_RESOURCE TOKEN_SECONDS
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , packages, authorizationPort, serverPort, trustedIssuer, gateway, seconds] = process.argv;
const require = createRequire(pathToFileURL(`${packages}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: Provider, errors } = await load('oidc-provider');
const jose = await load('jose');

const issuer = `http://127.0.0.1:${authorizationPort}`;
const origin = `http://127.0.0.1:${serverPort}`;
const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';
const seen = { grants: [], authorization: [] };
const usedAssertions = new Set();
const refusedSubjects = new Set(['mallory']);

const keys = await jose.generateKeyPair('RS256', { extractable: true });
const signingKey = { ...(await jose.exportJWK(keys.privateKey)), kid: 'one', use: 'sig', alg: 'RS256' };
const resourceServer = (resource) => ({
    scope: 'notes', audience: resource, accessTokenTTL: Number(seconds), accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
});
const provider = new Provider(issuer, {
    clients: [{
        client_id: 'gateway-at-notes', client_secret: 'a-secret-of-the-gateway-at-notes', redirect_uris: [], response_types: [],
        grant_types: [exchange, jwtBearer],
    }],
    jwks: { keys: [signingKey] },
    features: {
        devInteractions: { enabled: false },
        resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource) => resourceServer(resource) },
    },
});
provider.on('server_error', (_, error) => console.error(error));
const trustedKeys = jose.createRemoteJWKSet(new URL(`${trustedIssuer}/jwks`));

const verify = async (token, options) => {
    try {
        return (await jose.jwtVerify(token, trustedKeys, { issuer: trustedIssuer, algorithms: ['RS256'], ...options })).payload;
    } catch (error) {
        throw new errors.InvalidGrant(`not accepted: ${error.code}`);
    }
};

// A token for the subject of a verified token or assertion.
const issue = async (ctx, subject) => {
    const { resource, grant_type } = ctx.oidc.params;
    if (refusedSubjects.has(subject)) throw new errors.InvalidGrant('unknown user');
    if (![`${origin}/exchange/mcp`, `${origin}/id_jag/mcp`].includes(resource)) throw new errors.InvalidTarget();
    const token = new provider.AccessToken({ accountId: subject, client: ctx.oidc.client, scope: 'notes', gty: grant_type });
    token.resourceServer = new provider.ResourceServer(resource, resourceServer(resource));
    const value = await token.save();
    seen.grants.push({ grant: grant_type, subject });
    return { access_token: value, token_type: token.tokenType, expires_in: token.expiration, scope: 'notes' };
};

provider.registerGrantType(exchange, async (ctx) => {
    const { subject_token, subject_token_type, requested_token_type, audience } = ctx.oidc.params;
    if (subject_token_type !== accessTokenType || requested_token_type !== accessTokenType) throw new errors.InvalidRequest('wrong type');
    if (audience !== 'notes') throw new errors.InvalidTarget();
    const { sub } = await verify(subject_token, { audience: gateway });
    ctx.body = { ...(await issue(ctx, sub)), issued_token_type: accessTokenType };
}, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope']);

provider.registerGrantType(jwtBearer, async (ctx) => {
    const { assertion, resource } = ctx.oidc.params;
    const claims = await verify(assertion, { audience: issuer, typ: 'oauth-id-jag+jwt', requiredClaims: ['sub', 'jti', 'exp', 'client_id'] });
    if (claims.client_id !== ctx.oidc.client.clientId || claims.resource !== resource || usedAssertions.has(claims.jti)) {
        throw new errors.InvalidGrant('an assertion for somebody else, or used twice');
    }
    usedAssertions.add(claims.jti);
    ctx.body = await issue(ctx, claims.sub);
}, ['assertion', 'resource', 'scope']);

// Everybody may list the tools; only a token of the authorization server may call one. Requests that name a caller need one for everything.
const ownKeys = jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256' }] });
const tool = (path) => ({
    name: `whoami_by_${path.split('/')[1]}`, description: 'Says who calls.', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true },
});
const results = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } }),
    ping: () => ({}),
    'tools/list': (_, path) => ({ tools: [tool(path)] }),
};
const caller = async (authorization, path) => {
    const options = { issuer, audience: `${origin}${path}`, algorithms: ['RS256'] };
    const verified = await jose.jwtVerify((authorization ?? '').replace(/^Bearer /, ''), ownKeys, options).catch(() => null);
    return verified?.payload.sub;
};
const server = createServer(async (request, response) => {
    const send = (status, body, headers = {}) => {
        response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body === undefined ? '' : JSON.stringify(body));
    };
    const metadata = '/.well-known/oauth-protected-resource';
    if (request.url === '/seen') return send(200, seen);
    if (request.url.startsWith(`${metadata}/`)) {
        return send(200, { resource: `${origin}${request.url.slice(metadata.length)}`, authorization_servers: [issuer], scopes_supported: ['notes'] });
    }
    if (request.method !== 'POST') return send(405);
    let text = '';
    for await (const chunk of request) text += chunk;
    if (request.headers.authorization) seen.authorization.push(request.headers.authorization);
    const { id, method, params } = JSON.parse(text);
    if (id === undefined) return send(202);
    if (method === 'tools/call' || request.headers['x-caller']) {
        const subject = await caller(request.headers.authorization, request.url);
        if (!subject) return send(401, undefined, { 'WWW-Authenticate': `Bearer resource_metadata="${origin}${metadata}${request.url}"` });
        if (method === 'tools/call') {
            return send(200, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: `you are ${subject}` }] } });
        }
    }
    const result = results[method]?.(params, request.url);
    return send(200, result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } });
});
server.listen(Number(serverPort), '127.0.0.1', () => {
    provider.listen(Number(authorizationPort), '127.0.0.1', () => console.log(`server at ${origin}`));
});
