"""Logs in with the Python SDK and calls every tool: python_client.py ADDRESS CALLS."""

import asyncio
import json
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://127.0.0.1:1/callback"
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Storage(TokenStorage):
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Browser:
    """Follows the provider's redirects, and keeps what it was asked and answered."""

    def __init__(self):
        self.asked = []

    async def open(self, url):
        self.asked.append(parse_qs(urlparse(url).query))
        async with httpx2.AsyncClient() as http:
            while not url.startswith(REDIRECT):
                reply = await http.get(url)
                assert "location" in reply.headers, f"{reply.status_code}: {reply.text}"
                url = urljoin(url, reply.headers["location"])
        self.answer = {name: values[0] for name, values in parse_qs(urlparse(url).query).items()}

    async def result(self):
        answer = self.answer
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


def filled(value, kept):
    if isinstance(value, dict):
        return {key: filled(item, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, kept) for item in value]
    return kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value


async def main(address, calls):
    table = json.loads(Path(calls).read_text())
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="sidenote-login",
        redirect_uris=[REDIRECT],
        application_type="native",
        token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    login = OAuthClientProvider(address, metadata, Storage(), browser.open, browser.result)
    async with create_mcp_http_client(auth=login) as http:
        async with Client(streamable_http_client(address, http_client=http)) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            known = {call["tool"] for call in table}
            assert listed == known, f"not in the table: {listed - known}; not served: {known - listed}"
            kept = {}
            for call in table:
                result = await client.call_tool(call["tool"], filled(call["arguments"], kept))
                text = result.model_dump_json()
                assert not result.is_error, f"{call['tool']}: {text}"
                if "keep" in call:
                    kept[call["keep"]] = ID.search(text).group()
            version = client.protocol_version
    assert {asked["resource"][0] for asked in browser.asked} == {address}, browser.asked
    scopes = " | ".join(asked["scope"][0] for asked in browser.asked)
    print(f"python {version}: {len(table)} calls, scopes asked for: {scopes}")


asyncio.run(main(*sys.argv[1:]))
