-- Two calls at the same time do not create the tables twice.
select pg_advisory_xact_lock(7309940);
do $$
begin
    if not exists (select from pg_roles where rolname = 'sidenote_owner') then
        create role sidenote_owner nologin;
    end if;
    if not exists (select from pg_roles where rolname = 'sidenote_app') then
        create role sidenote_app login;
    end if;
    if not pg_has_role(current_user, 'sidenote_owner', 'member') then
        execute format('grant sidenote_owner to %I', current_user);
    end if;
end
$$;
