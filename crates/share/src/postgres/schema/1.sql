do $$
begin
    execute format('grant create on database %I to sidenote_owner', current_database());
end
$$;
create schema sidenote authorization sidenote_owner;
set local role sidenote_owner;

create table sidenote.migration (
    version integer primary key,
    at timestamptz not null default now()
);

-- The vault that the transaction has set, or null.
create function sidenote.current_vault() returns uuid language sql stable
    return nullif(current_setting('sidenote.vault', true), '')::uuid;

create table sidenote.vault (
    id uuid primary key,
    name text collate "C" not null unique,
    head bigint not null default 0,
    origin uuid not null
);

create table sidenote.blob (
    vault uuid not null references sidenote.vault,
    hash bytea not null check (octet_length(hash) = 32),
    bytes bytea not null,
    primary key (vault, hash)
);

create table sidenote.file (
    vault uuid not null references sidenote.vault,
    path text collate "C" not null,
    hash bytea,
    gen bigint not null,
    primary key (vault, path),
    foreign key (vault, hash) references sidenote.blob
);
create index on sidenote.file (vault, gen);

create table sidenote.event (
    vault uuid not null references sidenote.vault,
    gen bigint not null,
    id text collate "C" not null,
    at timestamptz not null,
    issuer text,
    subject text,
    client text,
    op text not null,
    line text not null,
    primary key (vault, gen, id),
    unique (vault, id)
);

create table sidenote.deed (
    vault uuid not null references sidenote.vault,
    seq bigint not null,
    id text collate "C" not null,
    line text not null,
    primary key (vault, seq)
);

create table sidenote.vector (
    vault uuid not null references sidenote.vault,
    model bigint not null,
    key bigint not null,
    bytes bytea not null,
    primary key (vault, model, key)
);

create table sidenote.member (
    vault uuid not null references sidenote.vault,
    who text not null,
    role text not null check (role in ('reader', 'writer', 'admin')),
    primary key (vault, who)
);

alter table sidenote.vault enable row level security, force row level security;
alter table sidenote.blob enable row level security, force row level security;
alter table sidenote.file enable row level security, force row level security;
alter table sidenote.event enable row level security, force row level security;
alter table sidenote.deed enable row level security, force row level security;
alter table sidenote.vector enable row level security, force row level security;
alter table sidenote.member enable row level security, force row level security;

create policy own on sidenote.vault using (
    id = sidenote.current_vault() or name = nullif(current_setting('sidenote.name', true), '')
) with check (id = sidenote.current_vault());
create policy own on sidenote.blob using (vault = sidenote.current_vault());
create policy own on sidenote.file using (vault = sidenote.current_vault());
create policy own on sidenote.event using (vault = sidenote.current_vault());
create policy own on sidenote.deed using (vault = sidenote.current_vault());
create policy own on sidenote.vector using (vault = sidenote.current_vault());
create policy own on sidenote.member using (vault = sidenote.current_vault());

grant usage on schema sidenote to sidenote_app;
grant select on sidenote.migration, sidenote.member to sidenote_app;
grant select, insert on sidenote.vault, sidenote.blob, sidenote.event, sidenote.deed, sidenote.vector to sidenote_app;
grant update (head) on sidenote.vault to sidenote_app;
grant select, insert, update on sidenote.file to sidenote_app;

reset role;
