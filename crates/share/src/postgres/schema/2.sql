set local role sidenote_owner;

-- Who is blocked in all vaults: the newest row of a person decides. No row is changed or removed.
create table sidenote.block (
    id bigint generated always as identity primary key,
    who text collate "C" not null,
    is_blocked boolean not null,
    at timestamptz not null default now(),
    line text not null
);
create index on sidenote.block (who, id);

-- Which contents are files now.
create index on sidenote.file (vault, hash);

alter table sidenote.block enable row level security, force row level security;
create policy own on sidenote.block for select using (sidenote.current_vault() is not null);

-- The owner administers all vaults.
create policy owner on sidenote.block to sidenote_owner using (true) with check (true);
create policy owner on sidenote.vault for select to sidenote_owner using (true);

-- The rights of a person in a vault, under any of some names, in one statement.
create function sidenote.rights_of(
    vault_name text, names text[], out id uuid, out role text, out is_blocked boolean
) language plpgsql as $$
begin
    perform set_config('sidenote.name', vault_name, true);
    select v.id into id from sidenote.vault v where v.name = vault_name;
    perform set_config('sidenote.vault', coalesce(id::text, ''), true);
    select m.role into role from sidenote.member m
        where m.vault = rights_of.id and m.who = any (names)
        order by array_position(array['admin', 'writer', 'reader'], m.role) limit 1;
    select coalesce(bool_or(newest.is_blocked), false) into is_blocked from (
        select distinct on (b.who) b.is_blocked from sidenote.block b
        where b.who = any (names) order by b.who, b.id desc
    ) newest;
end
$$;

grant select on sidenote.block to sidenote_app;

reset role;
